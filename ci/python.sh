#!/usr/bin/env bash
# The wheel for Python: built, installed into an empty environment, and its tests.
#
#   ci/python.sh         as users get it
#   ci/python.sh dev     with the build of `cargo test --workspace --all-features`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
profile=${1:-release}

# limited SECONDS COMMAND...: a command that hangs is named long before the limit of the whole step.
limited() {
  local status=0
  timeout --foreground --kill-after=10 "$@" || status=$?
  case $status in 124 | 137) echo "not done after $1 s: ${*:2}" ;; esac
  return $status
}

folder=$PWD/target/ci/python
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "skipped: the wheel needs Python 3.11 or newer"; exit 0; }
rm -rf "$folder" && mkdir -p "$folder"

python3 -m venv "$folder/tools"
limited 400 "$folder/tools/bin/pip" install --quiet --disable-pip-version-check --retries 5 maturin==1.16.0
if [ "$profile" = dev ]; then
  # With features as the tests have them, every crate is there already: maturin would ask for those of the wheel alone.
  cat >"$folder/cargo" <<'SH'
#!/usr/bin/env bash
[ "$1" = rustc ] || exec cargo "$@"
# Nor does the interpreter that maturin found make a difference: the wheel is for every Python from 3.11 on.
unset PYO3_CONFIG_FILE PYO3_ENVIRONMENT_SIGNATURE PYO3_PYTHON PYTHON_SYS_EXECUTABLE
exec cargo build --locked --workspace --all-features --lib --bins --tests --examples --message-format json-render-diagnostics
SH
  chmod +x "$folder/cargo"
  export CARGO=$folder/cargo
fi
limited 900 "$folder/tools/bin/maturin" build --quiet --locked --profile "$profile" \
  --manifest-path python/Cargo.toml --interpreter "$(command -v python3)" --out "$folder/wheels"

began=$SECONDS
python3 -m venv "$folder/user"
limited 400 "$folder/user/bin/pip" install --quiet --disable-pip-version-check --retries 5 "$folder"/wheels/*.whl
echo "$(basename "$folder"/wheels/*.whl): $(du -m "$folder"/wheels/*.whl | cut -f1) MB, installed with NumPy in $((SECONDS - began)) s"
cd "$folder"
"$folder/user/bin/grebe" --version
"$folder/user/bin/python" -c 'import grebe; print(grebe.open("synth:?channels=2&samples=1k").read(1000).shape)'

limited 400 "$folder/user/bin/pip" install --quiet --disable-pip-version-check --retries 5 pytest==9.2.0 mypy==2.4.1 \
  scipy==1.17.1 xarray==2026.9.0 nbclient==0.11.0 ipykernel==7.4.0
# Not through a pipe: it would stay open as long as any process that a test leaves behind.
limited 600 "$folder/user/bin/python" -m pytest -q -p no:cacheprovider --durations=5 ../../../python/tests >tests.log 2>&1 || { cat tests.log; exit 1; }
cat tests.log
if command -v valgrind > /dev/null; then
  limited 300 python3 ../../../ci/valgrind.py "$folder/user/bin/python" ../../../python/tests/memory.py
else
  echo "skipped: valgrind is not installed, and would look for arrays of memory that nobody has"
fi
"$folder/user/bin/mypy" --strict --cache-dir "$folder/mypy" -p grebe
"$folder/user/bin/mypy" --strict --cache-dir "$folder/mypy" ../../../python/tests
# In the words that .ci/run counts.
sed -nE 's/^([0-9]+) passed.*/\1 passed, 0 failed/p' tests.log
