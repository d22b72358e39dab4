#!/usr/bin/env bash
# Uses the page of `grebe serve` as a person does, in Chromium without a display.
#
#   ci/page.sh target/release/grebe
#
# Pictures of it are kept in target/ci.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
grebe=$(realpath "$1")

# Types first: the modules are checked as they are served, nothing is built of them.
tsc=target/ci/node/node_modules/.bin/tsc
if [ -x "$tsc" ]; then
  "$tsc" -p crates/grebe-serve/src/page/tsconfig.json
  echo "ok      types of the modules"
else
  echo "skipped: types of the page's modules: no $tsc (ci/packages.sh gets it where npm is)"
fi

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
  echo "skipped: the page in a browser: no chromium (Debian: apt-get install chromium)"
  exit 0
fi
exec python3 ci/page.py "$grebe" "$chromium"
