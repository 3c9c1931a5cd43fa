#!/usr/bin/env bash
# faults.sh CONFORMANCE FAULTY MATMUL_PLUGIN: runs graphrun-conformance on correct plug-ins, and on plug-ins
# with one injected fault, which it must find and name. A suite that no executor can fail is worthless.
set -euo pipefail
conformance=$1 faulty=$2 matmul=$3
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'FAIL: %s\n' "$1" >&2
  tail -n 20 "$work/log" >&2
  exit 1
}

passes() {  # passes PLUGIN FAULT FILTER
  PLUGIN_FAULT=$2 "$conformance" "--executor=$1" ${3:+"--gtest_filter=$3"} >"$work/log" 2>&1 || fail "$1 with '$2'"
}
finds() {  # finds FAULT FILTER TEST TEXT
  local code=0
  PLUGIN_FAULT=$1 "$conformance" "--executor=$faulty" "--gtest_filter=$2" >"$work/log" 2>&1 || code=$?
  [ $code = 1 ] || fail "$1: exit code $code"
  grep -F "[  FAILED  ] $3" "$work/log" >/dev/null || fail "$1: $3 passed"
  grep -F -- "$4" "$work/log" >/dev/null || fail "$1: it does not say '$4'"
}

passes "$faulty" ""
grep -E 'matmul +[0-9]+ run' "$work/log" >/dev/null || fail "the table does not list matmul"
passes "$matmul" "" 'Values.*/matmul/*:Runs.*'
passes "$faulty" declines_sum 'Values.*:Runs.*'
grep -F "faulty has no kernel for op 'sum' (sum)" "$work/log" >/dev/null || fail "what is declined is not listed"

finds wrong_sum 'Values.*' 'Values.faulty/sum/' 'against ref'
if grep -F '[  FAILED  ] Values.faulty/' "$work/log" | grep -vF 'faulty/sum/'; then fail "other ops are blamed"; fi
finds wrong_sum 'Runs.*/verify' Runs.faulty/small/verify '(sum, '
finds predicts_nothing 'Runs.*' Runs.faulty/small/verify 'predict/p differs after the whole phase'
finds forgets_steps 'Runs.*' Runs.faulty/small/verify 'many steps in one run leave another'
finds shares_its_arena 'Runs.*' Runs.faulty/small/two_loads 'something else than one alone'
finds writes_rows_first 'Runs.*' Runs.faulty/small/rows 'rows '
finds polls_late 'Runs.*' Runs.faulty/small/poll 'which the host polls'

code=0
"$conformance" --executor=./nowhere.so >"$work/log" 2>&1 || code=$?
[ $code = 4 ] || fail "a plug-in that is not there: exit code $code"
