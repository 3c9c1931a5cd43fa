#!/usr/bin/env bash
# fitting.sh GRAPHRUN ROOT: the summary, --json and --log of levenberg_marquardt have its three values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
model="$2/examples/fitting/pendulum.json"
expect() { grep -qE "$1" "$2" || { echo "expected $1 in:"; cat "$2"; exit 1; }; }
"$1" train "$model" --quiet --log "$folder/fit.csv" >"$folder/text"
expect '^accepted +5 steps$' "$folder/text"
expect '^damping +1e\+10$' "$folder/text"
expect '^gradient norm +[0-9.]+e-0[67]$' "$folder/text"
"$1" train "$model" --quiet --json --assert-no-alloc >"$folder/json"
expect '"optimizer":\{"accepted":5,"damping":10000000000,"gradient_norm":[0-9.e-]+\}' "$folder/json"
expect '^epoch,step,seconds,steps_per_second,loss,accepted,damping,gradient_norm$' "$folder/fit.csv"
"$1" plot "$folder/fit.csv" -o "$folder/fit.svg" >/dev/null
if grep -q damping "$folder/fit.svg"; then echo "the plot draws the damping"; exit 1; fi
expect '^1,1,[^,]*,[^,]*,[^,]*,1,[0-9.e-]+,[0-9.]+' "$folder/fit.csv"
