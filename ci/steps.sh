# Sourced by .ci/run: runs steps one after the other, times them, and counts results.
#
# A step is a command that fails with an exit status. The tests it reports are counted, in the words of cargo test
# (`test result: ok. 3 passed; 0 failed; ...`) or plainly (`3 passed, 0 failed`); one that reports none counts as one.
# A line that begins with `skipped: ` is repeated at the end, and counted.

passed=0 failed=0 ignored=0 chosen="" failures="" broken="" times="" skips=""
logs=target/ci
all_s=5000 # in all: a run that would take longer ends with what it has
declare -A besides # the processes of steps that were begun beside others
mkdir -p "$logs"
free_disk() { df --output=avail -BG . | tail -n 1 | tr -d ' '; }
free_before=$(free_disk) # a full disk fails tests that say nothing of it

# The steps to run; all, where none is named.
choose() { chosen="$*"; }

# step NAME SECONDS COMMAND...
step() {
  local name=$1 limit=$2 status=0 began=$SECONDS
  shift 2
  is_chosen "$name" || return 0
  printf '\n==> %s: %s\n' "$name" "$*"
  # Shown from the file: a pipe would stay open as long as any process that the step leaves behind.
  : >"$logs/$name.log"
  sleep infinity &
  local runs=$!
  tail -n +1 -f -s 0.2 --pid="$runs" "$logs/$name.log" &
  local shows=$!
  timeout --kill-after=10 "$(at_most "$limit")" "$@" </dev/null >>"$logs/$name.log" 2>&1 || status=$?
  kill "$runs"
  wait "$shows" || true
  close "$name" "$status" $((SECONDS - began))
}

# beside NAME SECONDS COMMAND...: starts a step in the background, at low priority, until it is joined.
beside() {
  local name=$1 limit=$2
  shift 2
  is_chosen "$name" || return 0
  printf '\n==> %s, beside what follows: %s\n' "$name" "$*"
  rm -f "$logs/$name.status"
  {
    local status=0 began=$SECONDS
    timeout --kill-after=10 "$(at_most "$limit")" nice -n 19 "$@" </dev/null >"$logs/$name.log" 2>&1 || status=$?
    echo "$status $((SECONDS - began))" >"$logs/$name.status"
  } &
  besides[$name]=$!
}

# join NAME: waits for a step that was begun beside others.
join() {
  is_chosen "$1" || return 0
  local ended
  wait "${besides[$1]}"
  read -r -a ended <"$logs/$1.status"
  printf '\n==> %s, which ran beside the others:\n' "$1"
  tail -n 60 "$logs/$1.log"
  close "$1" "${ended[@]}"
}

is_chosen() {
  [ -z "$chosen" ] || case " $chosen " in *" $1 "*) ;; *) return 1 ;; esac
}

# Remaining seconds of a step with this limit.
at_most() {
  local left=$((all_s - SECONDS > 1 ? all_s - SECONDS : 1))
  echo $(($1 < left ? $1 : left))
}

# close NAME STATUS SECONDS: counts a step that has ended, and says how.
close() {
  local name=$1 status=$2 took=$3 counts
  counts=$(count "$logs/$name.log" "$status")
  read -r p f i <<<"$counts"
  passed=$((passed + p)) failed=$((failed + f)) ignored=$((ignored + i))
  times+=$(printf '%6d s  %-10s %s passed, %s failed\n_' "$took" "$name" "$p" "$f") && times=${times%_}
  skips+=$(sed -n "s/^skipped: /  $name: /p" "$logs/$name.log"; printf _) && skips=${skips%_}
  broken+=$(failed_in "$logs/$name.log" "$name" "$status"; printf _) && broken=${broken%_}
  case $status in
    0) printf '==> %s: good, %d s\n' "$name" "$took" ;;
    124 | 137) printf '==> %s: FAILED, not done after %d s\n' "$name" "$took" ; failures+=" $name" ;;
    *) printf '==> %s: FAILED with status %d, %d s\n' "$name" "$status" "$took" ; failures+=" $name" ;;
  esac
}

# Counts of a log: passed, failed, ignored.
count() {
  awk -v status="$2" '
    /^test result: /                { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i
                                      if ($(i+1) ~ /^failed/) f += $i; if ($(i+1) ~ /^ignored/) s += $i } }
    /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
    /^skipped: /                    { s += 1 }
    END {
      if (status != 0 && f == 0) f = 1
      if (status == 0 && p + f + s == 0) p = 1
      print p + 0, f + 0, s + 0
    }' "$1"
}

# The failed tests of a log, with the first lines of their output, and the tests that had not ended. The last lines of the log
# where none is named.
failed_in() {
  local named
  named=$(failed_tests "$1" "$2")
  if [ -n "$named" ]; then
    printf '%s\n' "$named"
  elif [ "$3" -ne 0 ]; then
    printf '  %s, its last lines:\n' "$2"
    tail -n 12 "$1" | cut -c1-300 | sed 's/^/      /'
  fi
}

# Of the output of a test, its panic counts: what it printed before may be long.
failed_tests() {
  awk -v step="$2" '
    function show(   at) {
      for (at = panic ? panic : 1; at <= lines && at < (panic ? panic : 1) + 12; at++) print "      " substr(line[at], 1, 1500)
      lines = panic = 0
    }
    NR == FNR { if (/^test .+ \.\.\. FAILED$/) { failed[$2] = 1; print "  " step ": " $2 } else if (/^FAILED  ?[^ ]/) print "  " step ": " $2
                if (/has been running for over/) slow[$2] = 1; else if (/^test .+ \.\.\. /) delete slow[$2]; next }
    /^test result: |^failures:/ { show(); inside = 0 }
    /^---- .+ ----$/ { show(); inside = $2 in failed; next }
    inside && NF     { line[++lines] = $0; if (!panic && / panicked at /) panic = lines }
    END { show(); for (test in slow) print "  " step ": " test " had not ended" }' "$1" "$1"
}

# Prints times, skipped and failed steps, and the sum as the last line. Exits with 1 if any failed.
finish() {
  printf '\n%s%6d s  in all; free disk %s before, %s after\n' "$times" "$SECONDS" "$free_before" "$(free_disk)"
  [ -z "$skips" ] || printf 'skipped:\n%s' "$skips"
  [ -z "$broken" ] || printf 'failed tests:\n%s' "$broken"
  [ -z "$failures" ] || printf 'FAILED:%s\n' "$failures"
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$ignored"
  [ "$failed" -eq 0 ] && [ -z "$failures" ]
}
