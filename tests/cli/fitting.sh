#!/usr/bin/env bash
# fitting.sh GRAPHRUN ROOT: the summary, --json and --log of levenberg_marquardt have its three values; train and eval
# print confidence intervals.
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

"$1" train "$model" --quiet --intervals --save-weights "$folder/fit.npz" >"$folder/text"
expect '^parameter +value +std error +95 % interval$' "$folder/text"
expect '^decay +0.1189 +0.00127 +\[0.11639[0-9]*, 0.12141[0-9]*\]$' "$folder/text"
"$1" eval "$model" --weights "$folder/fit.npz" --intervals --json >"$folder/json"
expect '"intervals":\{"note":"","residuals":150,"std_dev":.*"parameters":\[\{"parameter":"amplitude","value":0.297' "$folder/json"
"$1" train "$model" --quiet --intervals --epochs 1 >"$folder/text"
expect '^intervals +unreliable: the parameters are [0-9.e+]+ standard errors from the minimum' "$folder/text"
"$1" train "$model" --quiet --intervals --set 'graph.curve=curve = amplitude + decay * phase * frequency + 0 * t' \
  --run-dir "$folder/runs" >"$folder/text"
expect '^intervals +no confidence intervals: J\^T w J is singular: .* do not determine' "$folder/text"
"$1" runs "$folder/runs" >/dev/null

# Messages name what this optimizer has, and the file that a user wrote.
fails() { # STATUS PATTERN COMMAND...
  local status=0
  "${@:3}" >"$folder/text" 2>&1 || status=$?
  [ "$status" = "$1" ] || { echo "${*:4}: exit code $status instead of $1"; exit 1; }
  expect "$2" "$folder/text"
}
fails 2 'levenberg_marquardt has no learning rate' "$1" check "$model" --set train.optimizer.levenberg_marquardt.lr=0.1
fails 2 'bfgs has no weight_decay' "$1" check "$model" --set 'train.optimizer={"bfgs": {"weight_decay": 0.1}}'
large=(--set 'graph.curve=curve = 1e30 * amplitude * t * 1e30 + decay + frequency + phase')
fails 1 'start from other parameters' "$1" train "$model" --quiet "${large[@]}"
if grep -qE 'learning rate|clip_norm' "$folder/text"; then echo "the hint names other settings"; exit 1; fi
fails 1 'lower the learning rate' "$1" train "$model" --quiet "${large[@]}" --set 'train.optimizer={"sgd": {"lr": 0.1}}'
fails 3 '^not verified: train, step 0: .* is inf on cpu and on ref' "$1" verify "$model" "${large[@]}"
sed '5s/,.*/,/' "${model%.json}.csv" >"$folder/pendulum.csv"
cp "$model" "$folder/gap.json"
fails 2 '"missing": \{"angle": "mean"\} or "drop" next to the file name handles it' "$1" train "$folder/gap.json"

# An interrupted training says why it prints no intervals.
"$1" train "$model" --quiet --intervals --epochs 1000000000 --set 'train.optimizer={"sgd": {"lr": 1e-9}}' \
  --log "$folder/long.csv" >"$folder/text" 2>&1 &
until [ -s "$folder/long.csv" ]; do sleep 0.05; done
kill -TERM $!  # background jobs of a script ignore SIGINT
wait $! && exit 1
expect '^intervals +none: the training was interrupted' "$folder/text"
