#!/usr/bin/env bash
# Other platforms, from Linux.
#
#   ci/targets.sh check    type-checks for macOS (64-bit Arm) and Windows
#   ci/targets.sh run      runs the command and tests for Windows under wine, and tests for 64-bit Arm under qemu
#
# Both drive check-targets.sh, which lies in the `tools` folder of a directory beside the checkout, or where
# GREBE_CHECK_TARGETS says. Where it is not there they are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The command, every crate below it, and their tests.
portable=(-p grebe-ring -p grebe-frame -p grebe-datagram -p grebe-shm -p grebe-flow -p grebe-process -p grebe-link -p grebe-recording -p grebe-stages -p grebe-scope -p grebe-relay -p grebe-zenoh -p grebe-connection -p grebe-tree -p grebe-remote -p grebe-probe -p grebe-serve -p grebe-view
  -p grebe-cli)
export TARGETS="aarch64-apple-darwin x86_64-pc-windows-msvc"

tool=${GREBE_CHECK_TARGETS:-$(compgen -G "../*/tools/check-targets.sh" | head -n 1 || true)}
if [ ! -f "$tool" ]; then
  echo "skipped: no check-targets.sh beside the checkout, and GREBE_CHECK_TARGETS does not name one"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: check-targets.sh installs packages, which needs root"
  exit 0
fi
tool=$(realpath "$tool")
export XC_TARGET_DIR=$PWD/target/foreign XC_ROOT=${XC_ROOT:-$HOME/.cache/xcheck}

case ${1:-check} in
  check)
    bash "$tool" setup $TARGETS
    bash "$tool" check . --locked "${portable[@]}" --all-targets
    ;;
  run)
    bash "$tool" setup-run
    bash "$tool" win . test --locked -p grebe-datagram -p grebe-frame -p grebe-shm
    bash "$tool" arm . test --locked -p grebe-datagram -p grebe-frame -p grebe-ring
    bash "$tool" arm . build --locked -p grebe-shm
    # Not optimised: that would take as long again.
    CARGO_PROFILE_DEV_OPT_LEVEL=0 bash "$tool" win . build --locked -p grebe-cli --no-default-features
    bash ci/release/try.sh "$XC_TARGET_DIR/x86_64-pc-windows-gnu/debug/grebe.exe" "$XC_ROOT/bin/wine-run"
    ;;
  *) sed -n '2,9p' "$0"; exit 2 ;;
esac
