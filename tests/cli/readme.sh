#!/usr/bin/env bash
# readme.sh GRAPHRUN EXAMPLE ROOT: what README.md shows is so. Its model trains to the results beside it, its C++ program is
# examples/xor.cpp, under 40 lines, and learns what it is given; its commands end well.
set -euo pipefail

graphrun=$(readlink -f "$1") example=$(readlink -f "$2") root=$(readlink -f "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "readme: $*"; exit 1; }
block() { awk -v kind="$1" '$0 == "```" kind { inside = 1; next } /^```/ { if (inside) exit } inside' "$root/README.md"; }

block cpp | cmp - "$root/examples/xor.cpp" || fail "the C++ program is not examples/xor.cpp"
[ "$(wc -l <"$root/examples/xor.cpp")" -lt 40 ] || fail "examples/xor.cpp has 40 lines or more"
"$(dirname "$0")/xor_answers.sh" "$example"

cd "$folder"
block json >xor.json
"$graphrun" xor.json >results 2>progress
# The lines that are the same on every machine.
awk '/^\$ graphrun xor.json/ { inside = 1 } /^```/ { inside = 0 } inside' "$root/README.md" |
  grep -E '^(rows|loss|mse|r2|mae|rmse|epochs|steps|arena|weights) ' >shown
[ "$(wc -l <shown)" -eq 10 ] || fail "the results have other lines"
while IFS= read -r line; do
  grep -qxF -- "$line" results || fail "not printed: '$line', but '$(grep "^${line%% *} " results)'"
done <shown

printf 'x0,x1\n0,0\n1,0\n' >new.csv
printf 'rooms,price\n1,10\n3,30\n2,21\n4,39\n' >houses.csv
awk '$0 == "```sh" { inside = 1; next } /^```/ { inside = 0 } inside && /^graphrun / { sub(/ *#.*/, ""); print }' \
  "$root/README.md" >commands
[ "$(wc -l <commands)" -ge 8 ] || fail "fewer commands than there were"
mkdir bin && ln -s "$graphrun" bin/graphrun
PATH="$folder/bin:$PATH" bash -euo pipefail commands >printed 2>&1 || { cat printed; fail "a command failed"; }
