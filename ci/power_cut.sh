#!/usr/bin/env bash
# The power fails as soon as `grebe recv` has called files verified, or `grebe cp` has ended: they must be whole. So must each that has
# its name when it fails in the middle.
#
#   ci/power_cut.sh [GREBE]      as root: a file system in an image, whose unflushed data the kernel keeps for minutes
#
# A copy of the image is the state of the disk, and so the state after a power cut; it is mounted and compared.
set -euo pipefail
[ $# -eq 0 ] || GREBE=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. ci/checks.sh
need_grebe

if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: only root can mount an image"
  exit 0
fi
for tool in mkfs.ext4 mount losetup; do
  command -v "$tool" >"$work/tool" || { echo "skipped: no $tool here"; exit 0; }
done

disk=$work/disk cut=$work/cut
mkdir "$disk" "$cut"
clean_up() { umount "$disk" "$cut" 2>/dev/null || true; }

# new_disk SECONDS: names, lengths and times come to the disk that often, content when half a minute old.
new_disk() {
  umount "$disk" 2>/dev/null || true
  rm -f "$work/image"
  truncate -s 96M "$work/image"
  mkfs.ext4 -q "$work/image" && mount -o "loop,commit=$1" "$work/image" "$disk"
}

power_cut() {
  umount "$cut" 2>/dev/null || true
  cp --sparse=always "$work/image" "$work/image.cut" && mount -o loop "$work/image.cut" "$cut"
}

# begin INTO: a receiver, and its ticket.
begin() {
  rm -f "$work"/recv.* # the session before must not answer for it
  timeout 40 "$grebe" recv "$1" --listen 127.0.0.1:0 --json >"$work/recv.out" 2>"$work/recv.err" &
  receiver=$!
  wait_for 10 grep -q '"ticket":".*"' "$work/recv.out" || { cat "$work/recv.err"; return 1; }
  ticket=$(sed -n 's/.*"ticket":"\([^"]*\)".*/\1/p' "$work/recv.out")
}

# give STATUS FILE...: sends to it, and waits until both have ended with this status.
give() {
  local expected=$1 sent=0 received=0
  shift
  GREBE_TICKET=$ticket timeout 40 "$grebe" send "$@" --json >"$work/send.out" 2>"$work/send.err" || sent=$?
  wait "$receiver" || received=$?
  [ "$sent $received" = "$expected $expected" ] || { echo "$sent $received"; cat "$work"/{send,recv}.err; return 1; }
}

transfer() { # INTO FILE...
  local into=$1
  shift
  begin "$into" && give 0 "$@"
}

# Names, lengths, modes, times and content. Leftovers of a removed folder of ours do no harm.
same() {
  diff <(listed "$1") <(listed "$2") >"$work/diff" && diff -r -x lost+found -x .grebe-partial "$1" "$2" >"$work/diff" ||
    { head -n 8 "$work/diff"; return 1; }
}

listed() {
  find "$1" \( -name lost+found -o -name .grebe-partial \) -prune -o -type f -printf '%P %m %s %T@\n' | sort
}

mkdir -p "$work/one" "$work/many/runs/deep/er" "$work/many/runs/none"
head -c 5000000 /dev/urandom >"$work/one/run7.bin"
for number in $(seq 300); do
  head -c $((number * 40)) /dev/urandom >"$work/many/runs/deep/er/$number"
done
touch -d 2020-02-02 "$work/one/run7.bin" "$work/many/runs/deep/er/"*
: >"$work/many/runs/empty"

new_disk 1
check "a file is received" transfer "$disk" "$work/one/run7.bin"
sleep 2.2
check "... the power fails" power_cut
check "... and it is whole" same "$work/one" "$cut"
check "the same is sent again to what the cut left" transfer "$cut" "$work/one/run7.bin"
check "... and it is whole" same "$work/one" "$cut"

new_disk 300
check "a tree of small files is received" transfer "$disk" "$work/many/runs"
check "... the power fails" power_cut
check "... and it is whole" same "$work/many" "$cut"

late_name() {
  begin "$disk" || return 1
  { wait_for 10 compgen -G "$disk/.grebe-partial/.grebe-p*" && echo precious >"$disk/run7.bin"; } &
  give 4 --bwlimit 20M "$work/one/run7.bin"
}
new_disk 300
check "a name is taken while its file is received" late_name
check "... what has it stays" grep -qx precious "$disk/run7.bin"
check "... and nothing else is left" test ! -e "$disk/.grebe-partial"

half() {
  begin "$disk" || return 1
  GREBE_TICKET=$ticket "$grebe" send --bwlimit 6M "$work/one/run7.bin" 2>"$work/send.err" &
  local sender=$!
  wait_for 20 grep -qs 'grebe j1' "$disk"/.grebe-partial/.grebe-j* # a note of how much is safe
  sleep 0.3
  pkill -STOP -P "$receiver" && sleep 0.3 # what is on its way to the disk comes there
  power_cut
  pkill -KILL -P "$receiver" || true
  kill -KILL "$sender"
  wait "$receiver" "$sender" || true
}
new_disk 300
check "the power fails on the way" half
check "... what was noted goes on" transfer "$cut" "$work/one/run7.bin"
check "... some of it" grep -q '"resumed_bytes":[1-9]' "$work/send.out"
check "... and it is whole" same "$work/one" "$cut"

mkdir "$work/both" && cp -a "$work/many/runs" "$work/one/run7.bin" "$work/both"

for how in batch file; do
  new_disk 300
  check "grebe cp --fsync $how" "$grebe" cp -a "$work/many/runs" "$work/one/run7.bin" "$disk" --fsync "$how"
  check "... the power fails" power_cut
  check "... and all is whole" same "$work/both" "$cut"
done

# named_are_whole: files with their final names after the cut equal the source. `named` is their number.
named_are_whole() {
  local name
  named=0
  while read -r name; do
    cmp "$work/both/$name" "$cut/$name" || return 1
    named=$((named + 1))
  done < <(cd "$cut" && find . \( -name lost+found -o -name .grebe-partial \) -prune -o -type f -print)
}

# The copy is held every few milliseconds, and so long each time that the system brings the names that are there to the disk, and no
# content of its own accord: the cut that follows would show a file that got its name too early.
cuts_on_the_way() {
  "$grebe" cp -a "$work/many/runs" "$work/one/run7.bin" "$disk" &
  local copy=$!
  cuts=0 seen=
  while sleep 0.004 && kill -STOP "$copy" && ! is_gone "$copy" && [ "$cuts" -lt 40 ]; do
    sleep 1.3
    power_cut && named_are_whole || { kill -KILL "$copy"; return 1; }
    cuts=$((cuts + 1)) seen="$seen $named"
    kill -CONT "$copy"
  done
  kill -CONT "$copy" || true
  wait "$copy" && [ "$cuts" -gt 0 ]
}
new_disk 1
check "the power fails at many moments of grebe cp, and what has its name is whole" cuts_on_the_way
echo "        $cuts moments; files with their names:$seen"
check "... and again when it has ended" power_cut
check "... and all is whole" same "$work/both" "$cut"
sum_up
