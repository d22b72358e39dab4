#!/usr/bin/env bash
# grebe against another implementation of VITA-49, which is built first.
#
#   ci/vita49.sh target/release/grebe
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --locked --quiet --manifest-path peers/vita49/Cargo.toml --target-dir target/peers-vita49
python3 ci/vita49.py "$1" target/peers-vita49/debug/peers-vita49
