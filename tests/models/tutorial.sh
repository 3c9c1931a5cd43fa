#!/usr/bin/env bash
# tutorial.sh GRAPHRUN PAGE.md [FOLDER]: types every command of the page (its ```sh blocks) in an empty folder, or one
# with copies of FOLDER's tables. They must succeed, and every metric and every prediction in its results (```text
# blocks) must be among what they print, but for the last digits: another order of sums may change those.
set -euo pipefail

graphrun=$(readlink -f "$1") tutorial=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
blocks() { awk -v kind="$1" '$0 == "```" kind { inside = 1; next } /^```/ { inside = 0 } inside' "$tutorial"; }

blocks sh >"$folder/commands"
mkdir "$folder/work"
if [ $# -gt 2 ]; then cp "$3"/*.csv "$folder/work"; fi
cd "$folder/work"
if ! PATH="$(dirname "$graphrun"):$PATH" bash -euo pipefail "$folder/commands" >"$folder/printed" 2>"$folder/progress"; then
  cat "$folder/printed" "$folder/progress"
  echo "tutorial: a command failed"
  exit 1
fi

# Is a line with these words there, numbers within 1e-4 of these?
printed() {
  awk -v wanted="$1" 'BEGIN { n = split(wanted, want) }
    NF == n {
      for (i = 1; i <= n; i++) {
        off = $i - want[i]; if (off < 0) off = -off
        if (want[i] + 0 == 0 ? $i != want[i] : off > 1e-4 * want[i]) next
      }
      found = 1
    }
    END { exit !found }' "$folder/printed"
}

checked=0
while IFS= read -r line; do
  checked=$((checked + 1))
  if ! printed "$line"; then
    echo "tutorial: not printed: $line"
    cat "$folder/printed"
    exit 1
  fi
done < <(blocks text | grep -E '^((loss|rmse|mae|r2|accuracy) |[0-9][0-9.]*$)')
[ "$checked" -gt 3 ] || { echo "tutorial: only $checked lines of results"; exit 1; }
echo "tutorial: $(grep -c . "$folder/commands") lines of commands, $checked lines of results"
