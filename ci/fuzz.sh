#!/usr/bin/env bash
# Each fuzz target for a short while: GREBE_FUZZ_SECONDS (6) a target.
#
#   ci/fuzz.sh          builds and runs them
#   ci/fuzz.sh build    only builds them
#   ci/fuzz.sh run      the same as the first, after the second
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
[ "${1:-}" != build ] || exit 0
mkdir -p target/ci

# Runs a target, and says how it went in one piece: others run beside it. Leaks are not searched for: a thread that has just
# ended still holds its handle, for `std::thread::scope` waits for its closure only. Memory without a bound meets the limit.
run() {
  local target=$1 log=target/ci/fuzz-$1.log inputs=("fuzz/corpus/$1") # what is found goes into the first
  mkdir -p "${inputs[0]}"
  [ ! -d "fuzz/seeds/$target" ] || inputs+=("fuzz/seeds/$target")
  if cargo +nightly fuzz run "$target" "${inputs[@]}" -- -max_total_time="${GREBE_FUZZ_SECONDS:-6}" -timeout=10 \
    -detect_leaks=0 -rss_limit_mb=4096 >"$log" 2>&1; then
    echo "ok      $target: $(grep '^Done' "$log")"
  else
    printf 'FAILED  %s\n%s\n' "$target" "$(tail -n 60 "$log" | sed 's/^/        /')"
  fi
}
export -f run

# A target keeps one processor busy.
cargo +nightly fuzz list | xargs -P "$(nproc)" -I{} bash -c 'run {}' | tee target/ci/fuzz-runs.log
passed=$(grep -c '^ok ' target/ci/fuzz-runs.log || true) failed=$(grep -c '^FAILED ' target/ci/fuzz-runs.log || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$((passed + failed))" -eq "$(cargo +nightly fuzz list | wc -l)" ]
