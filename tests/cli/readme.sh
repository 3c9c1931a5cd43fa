#!/usr/bin/env bash
# readme.sh GRAPHRUN XOR HOUSES ROOT [LIBRARY]: README.md shows programs and commands that work. Its JSON lines are what
# init writes; its C++ program is examples/houses.cpp, which predicts as the shell does; its Python program learns; its
# commands succeed. So do the first commands of command-line.md. The model of training.md gives the results shown there,
# and the C++ program of embedding.md is examples/xor.cpp, which learns its data. The program of cpp.md trains. Without
# LIBRARY the Python program and the compiler are not run.
set -euo pipefail

graphrun=$(readlink -f "$1") example=$(readlink -f "$2") houses=$(readlink -f "$3") root=$(readlink -f "$4") library=${5:-}
[ -z "$library" ] || library=$(readlink -f "$library")
guide="$root/docs/guide" reference="$root/docs/reference"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "readme: $*"; exit 1; }
block() { awk -v kind="$1" '$0 == "```" kind { inside = 1; next } /^```/ { if (inside) exit } inside' "$2"; }

block cpp "$guide/embedding.md" | cmp - "$root/examples/xor.cpp" || fail "the C++ program is not examples/xor.cpp"
[ "$(wc -l <"$root/examples/xor.cpp")" -lt 40 ] || fail "examples/xor.cpp has 40 lines or more"
"$(dirname "$0")/xor_answers.sh" "$example"

cd "$folder"
mkdir bin && ln -s "$graphrun" bin/graphrun
export PATH="$folder/bin:$PATH"
block json "$guide/training.md" >xor.json
graphrun xor.json >results 2>progress
# The lines that are the same on every machine.
awk '/^\$ graphrun xor.json/ { inside = 1 } /^```/ { inside = 0 } inside' "$guide/training.md" |
  grep -E '^(rows|loss|mse|r2|mae|rmse|epochs|steps|arena|weights) ' >shown
[ "$(wc -l <shown)" -eq 10 ] || fail "the results have other lines"
while IFS= read -r line; do
  grep -qxF -- "$line" results || fail "not printed: '$line', but '$(grep "^${line%% *} " results)'"
done <shown

# price = 20 + 3 rooms + 2.5 area
awk 'BEGIN {
  print "rooms,area,price"
  for (i = 0; i < 60; i++) { rooms = 1 + i * 7 % 5; area = 30 + i * 37 % 90; print rooms "," area "," 20 + 3 * rooms + 2.5 * area }
}' >houses.csv
printf 'rooms,area\n3,80\n5,120\n' >new.csv
run() {
  grep '^graphrun ' | sed 's/ *#.*//' >commands
  [ "$(wc -l <commands)" -ge "$2" ] || fail "$1 has fewer commands than there were"
  bash -euo pipefail commands >printed 2>&1 || { cat printed; fail "a command of $1 failed"; }
}
near() { awk -v what="$1" 'NR == 1 { wrong += $1 < 200 || $1 > 260 } NR == 2 { wrong += $1 < 300 || $1 > 370 } { print }
                           END { exit wrong || NR != 2 }' || fail "$1: wrong predictions"; }
awk '$0 == "```sh" { inside = 1; next } /^```/ { inside = 0 } inside' "$root/README.md" | run README.md 9
graphrun predict houses.safetensors new.csv | tail -n 2 | near shell
block text "$root/README.md" | tail -n 2 | near "README's result"
# The error on the test rows, to two digits.
rmse=$(block text "$root/README.md" | awk '$1 == "rmse" { print $4 }')
awk -v shown="$rmse" '$1 == "rmse" { exit sprintf("%.1f", $4) != sprintf("%.1f", shown) }' printed || fail "rmse is not $rmse"
block json "$root/README.md" >excerpt
[ -s excerpt ] || fail "README.md shows no model file"
while IFS= read -r line; do
  grep -qxF -- "$line" houses.json || fail "not in the file that init writes: $line"
done <excerpt
block cpp "$root/README.md" | cmp - "$root/examples/houses.cpp" || fail "README's program is not examples/houses.cpp"
[ "$(wc -l <"$root/examples/houses.cpp")" -lt 20 ] || fail "examples/houses.cpp has 20 lines or more"
"$houses" | near "examples/houses.cpp"
# Variables that the README exports.
export GRAPHRUN_LIBRARY=$library PYTHONPATH="$root/python"
if [ -n "$library" ] && python3 -c 'import numpy' 2>numpy; then
  block python "$root/README.md" >houses.py
  python3 -B houses.py >printed
  tail -n 2 printed | tr -d '[] ' | near "the Python program"
else
  echo "no NumPy, or a sanitizer: the Python program is not run"
fi
if [ -n "$library" ] && command -v g++ >/dev/null; then
  # The command names folders of the checkout.
  mkdir -p build/test
  ln -s "$root/include" "$root/examples" . && ln -s "${library%/*}" build/test/lib
  grep '^g++ ' "$root/README.md" >compile
  [ -s compile ] || fail "README.md has no g++ command"
  bash -euo pipefail compile | near "README's g++ command"
  block cpp "$reference/cpp.md" >page.cpp
  g++ -std=c++20 -Iinclude page.cpp build/test/lib/libgraphrun.so -Wl,-rpath,"$PWD/build/test/lib" -o page && ./page ||
    fail "the program of cpp.md"
else
  echo "no g++, or a sanitizer: README's g++ command is not run"
fi

rm houses.json
printf 'x0,x1\n0,0\n1,0\n' >new.csv
block sh "$reference/command-line.md" | run command-line.md 16
