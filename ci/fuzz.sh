#!/usr/bin/env bash
# Each fuzz target for a short while: GREBE_FUZZ_SECONDS (6) a target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ -f fuzz/Cargo.toml ] || { echo "skipped: there are no fuzz targets"; exit 0; }
if ! cargo +nightly --version 2>/dev/null; then
  echo "skipped: fuzzing needs the nightly toolchain (rustup toolchain install nightly)"
  exit 0
fi
cargo fuzz --version 2>/dev/null || cargo install --quiet --locked cargo-fuzz || {
  echo "skipped: cargo-fuzz cannot be installed"
  exit 0
}
cargo +nightly fuzz build
mkdir -p target/ci
passed=0 failed=0
for target in $(cargo +nightly fuzz list); do
  inputs=("fuzz/corpus/$target") # what is found goes into the first
  mkdir -p "${inputs[0]}"
  [ ! -d "fuzz/seeds/$target" ] || inputs+=("fuzz/seeds/$target")
  log=target/ci/fuzz-$target.log
  if cargo +nightly fuzz run "$target" "${inputs[@]}" -- -max_total_time="${GREBE_FUZZ_SECONDS:-6}" -timeout=10 \
    -rss_limit_mb=4096 >"$log" 2>&1; then
    echo "ok      $target: $(grep '^Done' "$log")"
    passed=$((passed + 1))
  else
    echo "FAILED  $target"
    tail -n 60 "$log" | sed 's/^/        /'
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
