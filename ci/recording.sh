#!/usr/bin/env bash
# The main job with the built command: a recording is played through UDP, a pipe and a WAV file, recorded, and must
# come out bit for bit; another tool reads the recordings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. ci/checks.sh
need_grebe

ecg=examples/data/ecg

through_udp() {  # FILE OUT: two processes, one datagram socket; the recorder ends by itself
  local recorder address log=$2.log # its own: the one before must not answer for it
  "$grebe" record udp://127.0.0.1:0 "$2.sigmf-meta" 2>"$log" &
  recorder=$!
  wait_for 10 grep -q "listening on" "$log" || { cat "$log"; return 1; }
  address=$(sed -n 's/^listening on //p' "$log")
  "$grebe" play "$1" --to "udp://$address" --speed 100 || return 1
  wait_for 20 is_gone "$recorder" || { echo "the recorder did not end with the stream"; kill "$recorder"; return 1; }
  wait "$recorder" || { cat "$log"; return 1; }
}

through_pipe() {  # FILE OUT
  "$grebe" play "$1" --to pipe: --speed 100 | "$grebe" record pipe: "$2.sigmf-meta"
}

same() { cmp "$ecg.sigmf-data" "$1.sigmf-data"; }

check "SigMF through UDP" through_udp "$ecg.sigmf-meta" "$work/udp"
check "... bit for bit" same "$work/udp"
check "SigMF through a pipe" through_pipe "$ecg.sigmf-meta" "$work/pipe"
check "... bit for bit" same "$work/pipe"
check "WAV through UDP" through_udp "$ecg.wav" "$work/wav"
check "... bit for bit" same "$work/wav"
check "four channels recorded" "$grebe" record "synth:?channels=4" "$work/four.sigmf-meta" --duration 10ms
check "... four files and their collection" test -s "$work/four.sigmf-collection"
check "the validator that ci/packages.sh installs is there" test -x "$kept/venv/bin/sigmf_validate"
check "every format, written and read by NumPy and sigmf" "$kept/venv/bin/python" ci/formats.py "$grebe" "$work/formats"
check "QPSK and tones, measured by SciPy" "$kept/venv/bin/python" ci/qpsk.py "$grebe" "$work/qpsk"
check "bands that are cut out, made by SciPy" "$kept/venv/bin/python" ci/cut.py "$grebe" "$work/cut"
check "bursts of known time, band and power, and false alarms" "$kept/venv/bin/python" ci/bursts.py "$grebe" "$work/bursts"
for meta in "$work"/*.sigmf-meta; do
  check "sigmf_validate ${meta##*/}" "$kept"/venv/bin/sigmf_validate "$meta"
done
sum_up
