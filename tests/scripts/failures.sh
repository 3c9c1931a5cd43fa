#!/usr/bin/env bash
# failures.sh CTEST: what scripts/test tells of a run of tests, from the logs of real runs of ctest, with processes that
# speak as GoogleTest does.
. "$(dirname "$0")/checks.sh"
ctest=$1 lib="$(readlink -f "$(dirname "$0")/../../scripts/lib.sh")"
cd "$work"
. "$lib"

# run PART: ctest over CTestTestfile.cmake; what is told of it is in $output, its exit code in $code.
run() {
  "$ctest" -j 4 >printed 2>&1 || true
  code=0
  output="$(test_report "$1" printed .)" || code=$?
}

cat >shard <<'END'
#!/bin/sh
cat <<'TEXT'
[==========] Running 7 tests from 2 test suites.
[ RUN      ] Suite.Good
[       OK ] Suite.Good (1 ms)
[ RUN      ] Suite.Bad
a.cpp:3: Failure
words of the bad one
[  FAILED  ] Suite.Bad (2 ms)
[ RUN      ] Many/Suite.Param/0
some words
[  FAILED  ] Many/Suite.Param/0, where GetParam() = (1, "x (y)") (0 ms)
[ RUN      ] Suite.NoDevice
a.cpp:9: Skipped
there is no device
[  SKIPPED ] Suite.NoDevice (0 ms)
TEXT
case $1 in
  crash) echo "[ RUN      ] Suite.Crash"; echo "last words"; kill -SEGV $$ ;;
  hang) echo "[ RUN      ] Suite.Hang"; exec sleep 30 ;;
  leak) echo "[  FAILED  ] 2 tests, listed below:"; echo "[  FAILED  ] Suite.Bad"; exit 1 ;;
esac
END
chmod +x shard
cat >CTestTestfile.cmake <<'END'
add_test(good sh -c "echo all is well")
add_test(long sh -c "for i in 1 2 3 4 5 6; do seq -f $i.%g 10; done; exit 1")
add_test(without_tool sh -c "echo skipped: no tool; exit 77")
set_tests_properties(without_tool PROPERTIES SKIP_RETURN_CODE 77)
add_test(missing /no/such/program)
add_test(test_some.1 sh shard crash)
add_test(test_some.2 sh shard hang)
set_tests_properties(test_some.2 PROPERTIES TIMEOUT 2)
add_test(test_some.3 sh shard leak)
END
run summary
[ "$code" -eq 1 ] || fail "exit code $code"
for words in "18 tests: 4 passed, 10 failed, 4 skipped" "failed: long (Failed)" "failed: missing (Not Run)" "failed: Suite.Bad" \
  "failed: Many/Suite.Param/0" "failed: Suite.Crash (SEGFAULT in test_some.1, whose other 2 tests did not run)" \
  "failed: Suite.Hang (Timeout in test_some.2, whose other 2 tests did not run)" \
  "skipped: without_tool: no tool" "skipped: Suite.NoDevice, Suite.NoDevice and 1 more: there is no device"; do
  says "$words"
done
sed -i '/long/d' CTestTestfile.cmake
run output
for words in "-- Suite.Bad" "words of the bad one" "-- Many/Suite.Param/0" "some words"; do says "$words"; done
for words in "all is well" "no tool" "there is no device" "tests:"; do
  ! grep -qF -- "$words" <<<"$output" || fail "it says: $words"
done

echo 'add_test(test_some.1 sh shard crash)' >CTestTestfile.cmake
run output
says "-- Suite.Crash: SEGFAULT"
says "last words"

echo 'add_test(long sh -c "for i in 1 2 3 4 5 6; do seq -f $i.%g 10; done; exit 1")' >CTestTestfile.cmake
run output
says "3.1"
says "6.10"
! grep -qF "2.10" <<<"$output" || fail "more than 40 lines"

# A process whose tests all passed, and which failed after them.
cat >after <<'END'
printf '[==========] Running 1 test from 1 test suite.\n[ RUN      ] Suite.Good\n[       OK ] Suite.Good (1 ms)\nleaked\n'
exit 1
END
echo 'add_test(test_some.1 sh after)' >CTestTestfile.cmake
run summary
says "2 tests: 1 passed, 1 failed, 0 skipped"
says "failed: test_some.1 (Failed)"
run output
says "leaked"

for i in $(seq 12); do echo "add_test(bad$i sh -c \"echo said $i; exit 1\")"; done >CTestTestfile.cmake
run summary
[ "$(wc -l <<<"$output")" -eq 12 ] || fail "not the counts, 10 names and a line"
says "and 2 more"
run output
[ "$(grep -c "^said" <<<"$output")" -eq 5 ] || fail "not five"

echo 'add_test(good true)' >CTestTestfile.cmake
run summary
[ "$code" -eq 0 ] || fail "nothing failed, and the exit code is $code"
[ "$output" = "1 tests: 1 passed, 0 failed, 0 skipped" ] || fail "nothing failed, and it tells of something"
run output
[ -z "$output" ] || fail "nothing failed, and it tells of something"
