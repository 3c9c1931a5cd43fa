# shellcheck shell=bash
# checks.sh: what the tests of scripts share. Sourced; sets `work`, a folder that goes with the test.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset GRAPHRUN_DATA

skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
fail() {
  printf 'failed: %s\n%s\n' "$1" "${output:-}" >&2
  exit 1
}
# expect CODE COMMAND...: runs it, its words in $output.
expect() {
  local wanted=$1 code=0
  shift
  output="$("$@" 2>&1)" || code=$?
  [ "$code" -eq "$wanted" ] || fail "exit code $code, not $wanted: $*"
}
says() { grep -qF -- "$1" <<<"$output" || fail "it does not say: $1"; }
same() { cmp -s "$1" "$2" || fail "$2 is not $1"; }
gone() { [ ! -e "$1" ] || fail "$1 is there"; }
sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
