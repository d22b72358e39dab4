#!/usr/bin/env bash
# try.sh ARCHIVE|COMMAND [RUNNER...]: unpacks a release, and shows that its command works: version, doctor, a picture of a generated
# signal, a recording that is the same after conversion, streams between processes. RUNNER starts the command, such as wine.
set -euo pipefail

archive=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s.%N)
since() { awk -v began="$began" -v now="$(date +%s.%N)" 'BEGIN { printf "%.1f s", now - began }'; }

cd "$work"
case $archive in
  *.zip) python3 -m zipfile -e "$archive" . ;;
  *.tar.xz) tar -xJf "$archive" ;;
  *) mkdir -p grebe-built/bin && cp "$archive" grebe-built/bin/ ;;
esac
command=$(echo "$PWD"/grebe-*/bin/grebe*)
chmod +x "$command"
grebe() { "${runner[@]}" "$command" "$@"; }
runner=("$@")

# The first picture, beside the time that a user waits for it.
grebe view 'synth:sine?channels=4&rate=1M&samples=200k' --png first.png >/dev/null 2>&1 || grebe view 'synth:sine?channels=4&rate=1M&samples=200k' --png first.png
head -c 8 first.png | grep -q PNG
echo "ok      the first picture, $(since) after the archive"
grebe --version
grebe doctor >doctor.txt
grep -q "^  ok       version" doctor.txt
echo "ok      doctor: $(tail -n 1 doctor.txt)"
grebe record 'synth:saw?channels=2&rate=1M&samples=100k' a.sigmf-meta --duration 1s >/dev/null
grebe info --verify a.sigmf-meta >/dev/null
grebe convert a.sigmf-meta a.npy >/dev/null
test "$(wc -c <a.npy)" -gt 100000
echo "ok      record, info --verify, convert"
grebe sg --rate 1M --duration 2s --to udp://127.0.0.1:45123 >/dev/null &
grebe record udp://127.0.0.1:45123 b.sigmf-meta --duration 1s >/dev/null
wait
grebe info --verify b.sigmf-meta >/dev/null
echo "ok      a stream over UDP"
grebe sg --rate 1M --duration 8s --to "shm://try-$$" >/dev/null &
grebe record "shm://try-$$" c.sigmf-meta --duration 1s >/dev/null
grebe info --verify c.sigmf-meta >/dev/null
grebe view "shm://try-$$" --png shared.png --after 1s >/dev/null
head -c 8 shared.png | grep -q PNG
wait
echo "ok      shared memory: one process generates, others record and draw"
echo "1 passed, 0 failed"
