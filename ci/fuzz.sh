#!/usr/bin/env bash
# Each fuzz target for a short while: GREBE_FUZZ_SECONDS (20) a target.
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
passed=0 failed=0
for target in $(cargo +nightly fuzz list); do
  echo "--- $target"
  if cargo +nightly fuzz run "$target" -- -max_total_time="${GREBE_FUZZ_SECONDS:-20}" -timeout=10 -rss_limit_mb=4096 \
    -print_final_stats=1 >"target/ci/fuzz-$target.log" 2>&1; then
    grep -E '^(Done|stat::number_of_executed_units)' "target/ci/fuzz-$target.log"
    passed=$((passed + 1))
  else
    tail -n 60 "target/ci/fuzz-$target.log"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
