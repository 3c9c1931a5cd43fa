# test-report.awk: results of a ctest run by test; ctest itself counts processes. Reads the output of ctest, then its
# Testing/Temporary/LastTest.log with the whole output of each process. A GoogleTest process reports each of its tests,
# any other process counts as one test. -v part=summary: the counts, then the failed tests (at most 10) and the skipped
# tests by reason. -v part=output: output of the first 5 failed tests, the last 40 lines of each.
# Exit code 1 if a test failed.

function failed(name, how) {
  if (++failures <= 10) failed_line[failures] = "  failed: " name (how == "" ? "" : " (" how ")")
  if (part != "output" || failures > 5) return
  print "-- " name (how == "" ? "" : ": " how)
  for (i = lines > 40 ? lines - 40 : 0; i < lines; ++i) print text[i]
}
function skipped(name, why) {
  ++skips
  if (why == "") why = "no reason given"
  if (!(why in skips_of)) reasons[++reason_count] = why
  if (++skips_of[why] <= 2) names_of[why] = names_of[why] (skips_of[why] > 1 ? ", " : "") name
}
function test_of(line) {  # the name in GoogleTest's line of a result
  sub(/^\[[^]]*\] /, "", line)
  sub(/ \([0-9]+ ms\)$/, "", line)
  sub(/, where (Type|Get)Param.*$/, "", line)
  return line
}
function last_line(  i) {
  for (i = lines - 1; i >= 0; --i) if (text[i] != "") return text[i]
  return ""
}
function end_of_process(  why) {
  how = status[process]
  if (how == "Skipped") {
    why = last_line()
    sub(/^skipped: /, "", why)
    skipped(process, why)
  } else if (running != "") {
    failed(running, how " in " process (wanted > results + 1 ? ", whose other " wanted - results - 1 " tests did not run" : ""))
  } else if (how != "" && !own_failures) {
    failed(process, how)
  } else if (how == "" && !is_gtest) {
    ++passes
  }
}

FNR == 1 { ++file }
file == 1 && /^\t *[0-9]+ - .* \([^()]*\)$/ {
  name = $0
  sub(/^\t *[0-9]+ - /, "", name)
  how = name
  sub(/^.* \(/, "", how)
  sub(/\)$/, "", how)
  sub(/ \([^()]*\)$/, "", name)
  status[name] = how
}
file == 1 { next }

!inside && /^[0-9]+\/[0-9]+ Test: / {
  process = $0
  sub(/^[^:]*: /, "", process)
  running = ""
  is_gtest = own_failures = wanted = results = lines = 0
  next
}
!inside && /^Output:$/ { getline; inside = 1; next }
!inside { next }
/^<end of output>$/ { inside = 0; end_of_process(); next }
/^\[==========\] Running [0-9]+ tests? / { is_gtest = 1; wanted = $3 }
/^\[ RUN      \] / { running = test_of($0); lines = 0; reason = ""; next }
running != "" && /^\[       OK \] .* \([0-9]+ ms\)$/ { ++passes; ++results; running = ""; next }
running != "" && /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { failed(running, ""); ++results; own_failures = 1; running = ""; next }
running != "" && /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { skipped(running, reason); ++results; running = ""; next }
{
  if (after_skip && reason == "") reason = $0
  after_skip = /: Skipped$/
  if ($0 != "") text[lines++] = $0
}

END {
  if (part != "output") {
    printf "%d tests: %d passed, %d failed, %d skipped\n", passes + failures + skips, passes, failures, skips
    for (i = 1; i <= failures && i <= 10; ++i) print failed_line[i]
    if (failures > 10) print "  failed: and " failures - 10 " more"
    for (i = 1; i <= reason_count; ++i) {
      why = reasons[i]
      rest = skips_of[why] - 2
      print "  skipped: " names_of[why] (rest > 0 ? " and " rest " more" : "") ": " why
    }
  }
  exit failures > 0
}
