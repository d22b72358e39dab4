#!/usr/bin/env bash
# Proves the README's two commands where there is nothing but gcc and the Rust toolchain: in a Debian 12 made for it.
#
#   sudo ci/bare-debian.sh          about 15 minutes on two cores, 5 GB in TMPDIR; its output stays in target/ci
#
# Needs root, debootstrap, tmux, git and the toolchain. The last commit is cloned into the new system and built there
# by an ordinary user, without a display; the toolchain is lent to it read-only, and the crates come from this
# machine's download cache, so that Cargo.lock alone says which.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ "$(id -u)" -eq 0 ] || { echo "this makes a system to chroot into, which needs root"; exit 1; }
for tool in debootstrap tmux git cargo unshare; do
  command -v "$tool" >/dev/null || { echo "this needs $tool"; exit 1; }
done
# Mounts and processes of its own: all of them end with this script, however it ends.
[ "${1:-}" = inside ] || exec unshare --mount --pid --fork --kill-child --mount-proc "$BASH" ci/bare-debian.sh inside

. ci/checks.sh
. ci/terminal.sh
debian=$work/debian
home=/home/dev
limit_s=10 # from the build's end to the picture

# Nothing is removed while anything of this machine is still mounted below.
clean_up() {
  local mounted
  close_terminal
  for mounted in dev proc opt/rust; do umount --recursive --lazy "$debian/$mounted" 2>/dev/null || true; done
  ! grep -q " $debian/" /proc/self/mountinfo
}

make_debian() {
  debootstrap --variant=minbase --include=gcc,libc6-dev bookworm "$debian"
}

lend_toolchain() {
  mkdir -p "$debian/opt/rust" || return 1
  mount --bind "$(rustc --print sysroot)" "$debian/opt/rust" || return 1
  mount -o remount,bind,ro "$debian/opt/rust" || return 1
  mount --bind /dev "$debian/dev" && mount --bind /dev/pts "$debian/dev/pts" || return 1
  mount -t tmpfs -o mode=1777 tmpfs "$debian/dev/shm" || return 1
  mount -t proc proc "$debian/proc"
}

bring_source() {
  local cargo=${CARGO_HOME:-$HOME/.cargo}
  cargo fetch --locked || return 1
  chroot "$debian" useradd --create-home dev || return 1
  mkdir -p "$debian$home/.cargo/registry" || return 1
  cp -r "$cargo/registry/index" "$cargo/registry/cache" "$debian$home/.cargo/registry/" || return 1
  git clone --quiet --no-local . "$debian$home/grebe" || return 1
  chroot "$debian" chown -R dev:dev "$home"
}

# The command line that runs a command as the user in the new system, with nothing of this one's environment.
as_user() {
  echo "exec chroot --userspec=dev:dev '$debian' /usr/bin/env -i HOME=$home USER=dev TERM=xterm-256color LANG=C.UTF-8" \
    "PATH=/opt/rust/bin:/usr/bin:/bin CARGO_NET_OFFLINE=true CARGO_TERM_PROGRESS_WHEN=never" \
    "/bin/bash -c 'cd $home/grebe && $1'"
}

start_grebe() {
  rm -f "$debian$home/status"
  open_terminal "$(as_user "cargo run --release; echo \$? >$home/status; sleep 600")"
}

build_and_run() {
  local built=$debian$home/grebe/target/release/grebe ended began=$SECONDS
  start_grebe || return 1
  wait_for 2400 is_built_or_over "$built" || return 1
  [ ! -e "$debian$home/status" ] || { screen; return 1; }
  echo "built in $((SECONDS - began)) s"
  wait_for 30 shows LIVE || { screen; echo "never live"; return 1; }
  # From the moment the linker wrote its last byte.
  ended=$(stat -c %.3Y "$built")
  awk -v now="$(date +%s.%N)" -v ended="$ended" -v limit="$limit_s" \
    'BEGIN { printf "live %.1f s after the build\n", now - ended; exit now - ended > limit }'
}

is_built_or_over() { [ -e "$1" ] || [ -e "$debian$home/status" ]; }

# The picture that is up, and where it lost anything because this machine did something else, two further ones.
run_without_loss() {
  local try
  for try in 1 2 3; do
    [ "$try" -eq 1 ] || { start_grebe && wait_for 60 shows LIVE; } || return 1
    sleep 3
    shows_four_moving_channels || { screen; return 1; }
    screen >"$kept/bare-debian.txt"
    lost_nothing >"$work/nothing-lost" || true
    press q
    wait_for 10 test -s "$debian$home/status" || { screen; echo "does not end on q"; return 1; }
    grep -qx 0 "$debian$home/status" || { screen; echo "exit status $(cat "$debian$home/status")"; return 1; }
    close_terminal
    if [ -s "$work/nothing-lost" ]; then
      echo "nothing lost in run $try: $(cat "$work/nothing-lost")"
      return 0
    fi
  done
  cat "$kept/bare-debian.txt"
  return 1
}

tests() {
  bash -c "$(as_user "cargo test --workspace --no-fail-fast")" >"$kept/bare-debian-tests.log" 2>&1 || { tail -n 80 "$kept/bare-debian-tests.log"; return 1; }
  awk '/^test result: ok/ { passed += $4; ignored += $8 } END { print passed " tests passed, " ignored " ignored"; exit passed == 0 }' \
    "$kept/bare-debian-tests.log"
}

# A check whose output is worth reading when it succeeds, and without which the next makes no sense.
must() {
  local began=$SECONDS failed=$checks_failed
  check "$@"
  [ "$checks_failed" -eq "$failed" ] || { sum_up; exit 1; }
  tail -n 3 "$work/check.log" | sed 's/^/        /'
  echo "        $((SECONDS - began)) s"
}

echo "commit $(git rev-parse --short HEAD), $(rustc --version)"
must "a minimal Debian with gcc" make_debian
must "the toolchain, and nothing else of this machine" lend_toolchain
must "a clone and the crates it names" bring_source
must "cargo run --release: the scope within $limit_s s of the build's end" build_and_run
must "... four channels move, nothing is lost, q ends it" run_without_loss
must "cargo test --workspace" tests
sum_up
