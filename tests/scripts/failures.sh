#!/usr/bin/env bash
# failures.sh CTEST: what scripts/test tells of failed tests, from the log of a real run of some that fail.
. "$(dirname "$0")/checks.sh"
ctest=$1 lib="$(readlink -f "$(dirname "$0")/../../scripts/lib.sh")"
cd "$work"
. "$lib"

cat >CTestTestfile.cmake <<'END'
add_test(good sh -c "echo all is well")
add_test(long sh -c "for i in 1 2 3 4 5 6; do seq -f $i.%g 10; done; exit 1")
add_test([=[Suite.Name/with (brackets)]=] sh -c "echo some words; exit 2")
add_test(skipped sh -c "echo no device; exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(slow sleep 30)
set_tests_properties(slow PROPERTIES TIMEOUT 1)
add_test(crash sh -c "kill -SEGV $$")
END
"$ctest" --output-on-failure >log 2>&1 && fail "nothing failed"
output="$(failed_tests log)"
[ "$output" = $'long (Failed)\nSuite.Name/with (brackets) (Failed)\nslow (Timeout)\ncrash (SEGFAULT)' ] ||
  fail "these are not the names"
output="$(failed_output log)"
for words in "-- long: Failed" 3.1 6.10 "-- Suite.Name/with (brackets): Failed" "some words" "-- slow: Timeout" "-- crash: "; do
  says "$words"
done
for words in 2.10 "all is well" "no device" "tests passed"; do
  ! grep -qF -- "$words" <<<"$output" || fail "it says: $words"
done

for i in $(seq 12); do echo "add_test(bad$i sh -c \"echo said $i; exit 1\")"; done >CTestTestfile.cmake
"$ctest" --output-on-failure >log 2>&1 && fail "nothing failed"
output="$(failed_tests log)"
[ "$(wc -l <<<"$output")" -eq 11 ] || fail "not 10 names and a line"
says "bad10 (Failed)"
says "and 2 more"
output="$(failed_output log)"
says "said 5"
! grep -qF "said 6" <<<"$output" || fail "more than five"

echo 'add_test(good true)' >CTestTestfile.cmake
"$ctest" --output-on-failure >log 2>&1 || fail "it failed"
[ -z "$(failed_tests log)$(failed_output log)" ] || fail "nothing failed, and it tells of something"
