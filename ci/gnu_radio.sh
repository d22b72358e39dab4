#!/usr/bin/env bash
# grebe against GNU Radio: its files and network blocks, and grebe's own blocks in its flow graphs, with the wheel that ci/python.sh built.
#
#   ci/gnu_radio.sh target/release/grebe
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command=$1 python=/usr/bin/python3 # the Python that GNU Radio of Debian is for

"$python" ci/gnu_radio.py "$command"
wheels=(target/ci/python/wheels/*.whl)
if ! "$python" -c "from gnuradio import gr" 2>/dev/null || [ ! -e "${wheels[0]}" ]; then
  echo "skipped: blocks for GNU Radio: no GNU Radio, or no wheel (ci/python.sh builds it)"
  exit 0
fi
folder=target/ci/gnuradio
rm -rf "$folder"
# With --without-pip: Debian's Python has no ensurepip of its own everywhere.
"$python" -m venv --system-site-packages --without-pip "$folder"
target/ci/python/tools/bin/pip --python "$folder/bin/python" install --quiet --disable-pip-version-check --no-deps "${wheels[0]}"
"$folder/bin/python" ci/gr_grebe.py "$command"
