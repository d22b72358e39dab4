# Sourced by the scripts that drive the built command as a person would: checks with a name, and their sum.

export LC_ALL=C.UTF-8
checks_passed=0 checks_failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/grebe-ci.XXXXXX")
kept=$PWD/target/ci # what a person may want to look at afterwards
mkdir -p "$kept"
# A script ends its background processes.
trap 'status=$?; jobs -p | xargs -r kill 2>/dev/null || true; clean_up && rm -rf "$work"; exit $status' EXIT
clean_up() { :; }

# check WHAT COMMAND...: reports whether the command succeeds, with its output if not.
check() {
  local what=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    echo "ok      $what"
    checks_passed=$((checks_passed + 1))
  else
    echo "FAILED  $what: $*"
    sed 's/^/        /' "$work/check.log"
    checks_failed=$((checks_failed + 1))
  fi
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# An orphaned process may stay a zombie for seconds until init reaps it.
is_gone() { ! kill -0 "$1" 2>/dev/null || [[ $(ps -o stat= -p "$1") == Z* ]]; }

# The sum in the words that .ci/run counts.
sum_up() {
  echo "$checks_passed passed, $checks_failed failed"
  [ "$checks_failed" -eq 0 ]
}

# Leaves with a reason where the command has not been built.
need_grebe() {
  grebe=${GREBE:-$PWD/target/release/grebe}
  [ -x "$grebe" ] || { echo "no $grebe: run cargo build --release first"; exit 1; }
}
