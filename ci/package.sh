#!/usr/bin/env bash
# Every crate that is meant for others can be packaged, and the library brings in no command line, terminal or plotting.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if cargo tree --locked -p grebe -e normal --prefix none | grep -E '^(clap|ratatui|crossterm|plotters|indicatif|anyhow) '; then
  echo "the library grebe must not depend on these"
  exit 1
fi
rm -rf target/package
cargo package --locked --workspace --exclude grebe-testing --exclude my-stage --exclude grebe-python --no-verify --allow-dirty --quiet
packages=$(find target/package -maxdepth 1 -name 'grebe*.crate' | wc -l)
crates=$(grep -L '^publish = false' crates/*/Cargo.toml | wc -l)
echo "$packages packages of $crates crates"
[ "$packages" -eq "$crates" ]
