#!/usr/bin/env bash
# tools.sh CMAKE CTEST GENERATOR: a test whose tool is missing, and one that this build cannot have, is skipped with its reason.
. "$(dirname "$0")/checks.sh"
tests="$(readlink -f "$(dirname "$0")/..")"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(tools LANGUAGES NONE)
enable_testing()
include($tests/Tools.cmake)
graphrun_python_test(python $work/script.py one "two words")
graphrun_skipped_tests("there is no device" first second)
END
expect 0 "$1" -G "$3" -S "$work" -B "$work/build"
cat >"$work/python" <<'END'
#!/bin/sh
echo "called: $*"
[ "$1" = -c ] || exit "$CODE"
END
chmod +x "$work/python"

expect 0 env GRAPHRUN_PYTHON="$work/none" "$2" --test-dir "$work/build" --verbose
says "skipped: there is no none"
says "skipped: there is no device"
for name in python first second; do
  grep -E "Test +#[0-9]: $name \.+\*\*\*Skipped" <<<"$output" >/dev/null || fail "$name is not skipped"
done
expect 0 env CODE=0 GRAPHRUN_PYTHON="$work/python" "$2" --test-dir "$work/build" --verbose
says "called: -B $work/script.py one two words"
grep -E "Test +#1: python \.+ +Passed" <<<"$output" >/dev/null || fail "python did not pass"
expect 8 env CODE=1 GRAPHRUN_PYTHON="$work/python" "$2" --test-dir "$work/build"
