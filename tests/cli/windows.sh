#!/usr/bin/env bash
# windows.sh GRAPHRUN ROOT: windows over a data set: values computed by hand, equal results with and without shared
# rows, predictions, forecasts, evaluations and `init --window`. Bad settings are rejected with the reason.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "windows: $*"; exit 1; }
graphrun() { "$graphrun" "$@"; }
# rejected MESSAGE ARGUMENTS
rejected() {
  local message=$1
  shift
  if graphrun "$@" >printed 2>&1; then fail "accepted: $*"; fi
  grep -qF -- "$message" printed || { cat printed; fail "not printed: $message"; }
}
# near VALUE EXPECTED TOLERANCE
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a - b <= t && b - a <= t) }' || fail "$1 is not $2"; }
key() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" | head -n 1; }

# 1, 2, 4, ... 32: the last row of a window times w predicts the next row but for a factor.
printf 'v,u\n1,7\n2,7\n4,5\n8,5\n16,3\n32,3\n' >powers.csv
cat >powers.json <<'JSON'
{"format": 1, "name": "powers",
 "data": {"train": {"csv": "powers.csv", "x": ["v"], "y": "v", "window": {"length": 2}}},
 "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
 "parameters": {"w": {"shape": [1], "init": {"constant": 1}}},
 "graph": ["y_hat = slice(x, axis=1, start=1) * w", "loss = mean(square(y_hat - y))"],
 "outputs": {"y_hat": "y"},
 "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0}}, "batch": 4, "epochs": 1}}
JSON
loss() { graphrun train powers.json --quiet --json "$@" | tr -d '\n' | sed 's/.*"train": *{[^}]*"loss": *\([^,}]*\).*/\1/'; }
for executor in cpu ref; do
  # (4 - 2)^2, (8 - 4)^2, (16 - 8)^2 and (32 - 16)^2
  near "$(loss --executor=$executor)" 85 0
  # The target two rows after the window: (8 - 2)^2, (16 - 4)^2, (32 - 8)^2
  near "$(loss --executor=$executor --set data.train.window.target=2 --set train.batch=3)" 252 0
  # Every second window: (4 - 2)^2 and (16 - 8)^2
  near "$(loss --executor=$executor --set data.train.window.hop=2 --set train.batch=2)" 34 0
  # The first row of each window of three: (8 - 1)^2, (16 - 2)^2, (32 - 4)^2
  near "$(loss --executor=$executor --set data.train.window.length=3 --set inputs.x='["batch", 3]' --set train.batch=3 \
    --set 'graph=["y_hat = slice(x, axis=1, start=0, stop=1) * w", "loss = mean(square(y_hat - y))"]')" 343 0
  # Two columns, as time steps and features: u of the first row of each window.
  near "$(loss --executor=$executor --set data.train.x='["v", "u"]' --set inputs.x='["batch", 2, 2]' \
    --set 'graph=["y_hat = reshape(slice(slice(x, axis=1, start=0, stop=1), axis=2, start=1), shape=[-1, 1]) * w",
                  "loss = mean(square(y_hat - y))"]')" "$(awk 'BEGIN { print (9 + 1 + 121 + 729) / 4 }')" 0
done
# The plan stores 5 rows of v for 4 windows, 4 first rows and 4 targets.
graphrun plan powers.json --program >printed
grep -qE 'data/train/x#[0-9]+: data f32\(5, 1\), 20 bytes' printed || { cat printed; fail "the rows are not stored once"; }

# Shared rows give the bits of copied rows, which the table of all windows has, shuffled and in a last short batch.
awk 'BEGIN { print "v"; for (i = 0; i < 60; i++) print i * 37 % 23 + i / 8 }' >series.csv
awk 'NR > 1 { v[n++] = $1 } END { print "a,b,c,y"; for (i = 0; i + 3 < n; i++) print v[i] "," v[i + 1] "," v[i + 2] "," v[i + 3] }' \
  series.csv >copied.csv
model() {
  cat <<JSON
{"format": 1, "name": "series", "data": {"train": $1},
 "inputs": {"x": ["batch", 3], "y": ["batch", 1]},
 "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 8, "activation": "tanh"},
           {"name": "y_hat", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mse(y_hat, y)"],
 "outputs": {"y_hat": "y"},
 "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 8, "shuffle": true, "epochs": 3, "seed": 2}}
JSON
}
model '{"csv": "series.csv", "x": ["v"], "y": "v", "window": {"length": 3}}' >shared.json
model '{"csv": "copied.csv", "x": ["a", "b", "c"], "y": "y"}' >copied.json
for executor in cpu ref; do
  shared=$(graphrun shared.json -q --json --executor=$executor | key weights_hash)
  [ -n "$shared" ] || fail "no weights"
  [ "$shared" = "$(graphrun copied.json -q --json --executor=$executor | key weights_hash)" ] || fail "$executor: other weights"
done
graphrun verify shared.json >printed || { cat printed; fail "verify"; }

# The case lags: a line through the two months before. Expected values: least squares in double precision.
printf 'month,passengers\n' >d.csv
set -- 112 118 132 129 121 135 148 148 136 119 104 118 115 126 141 135 125 149 170 170 158 133 114 140
for value; do printf '2020-%02d-01,%d\n' $((i = ${i:-0} % 12 + 1)) "$value" >>d.csv; done
cat >lags.json <<'JSON'
{"format": 1, "name": "l",
 "data": {"train": {"csv": "d.csv", "x": ["passengers"], "y": "passengers", "window": {"length": 2}},
          "transform": {"x": ["standardize"], "y": ["standardize"]}},
 "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
 "graph": ["y_hat = dense(x, units=1)", "loss = mean(square(y_hat - y))"],
 "outputs": {"y_hat": "y"},
 "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 2000}}
JSON
graphrun train lags.json -q --save-weights lags.npz >printed
near "$(awk '$1 == "rmse" { print $2 }' printed)" 11.565279 1e-4
near "$(awk '$1 == "rows" { print $2 }' printed)" 22 0
graphrun predict lags.json d.csv --weights lags.npz >fitted.csv
[ "$(sed -n 1p fitted.csv)" = row,y_hat ] || fail "the header of predict"
[ "$(sed -n 2p fitted.csv | cut -d, -f1)" = 2 ] && [ "$(tail -n 1 fitted.csv | cut -d, -f1)" = 24 ] || fail "rows of predict"
# 72.66221762 - 0.49997649 * 112 + 0.96411754 * 118
near "$(sed -n 2p fitted.csv | cut -d, -f2)" 130.430720 1e-3
graphrun predict lags.json d.csv --weights lags.npz --steps 3 >forecast.csv
[ "$(cut -d, -f1 forecast.csv | tr '\n' ' ')" = 'row 24 25 26 ' ] || fail "rows of --steps"
near "$(sed -n 2p forecast.csv | cut -d, -f2)" 150.641354 1e-3
near "$(sed -n 3p forecast.csv | cut -d, -f2)" 147.901481 1e-3
near "$(sed -n 4p forecast.csv | cut -d, -f2)" 139.939495 1e-3
graphrun predict lags.json d.csv --weights lags.npz --steps 1 --json | grep -qF '"predictions":[[24,150.6' || fail "--json"
graphrun predict lags.json d.csv --weights lags.npz --keep month >kept.csv
[ "$(sed -n 2p kept.csv | cut -d, -f1,2)" = 2,2020-03-01 ] && [ "$(tail -n 1 kept.csv | cut -d, -f2)" = "" ] || fail "--keep"
near "$(graphrun eval lags.json --weights lags.npz --data d.csv -q | awk '$1 == "rmse" { print $2 }')" 11.565279 1e-4
head -n 3 d.csv >short.csv
near "$(graphrun predict lags.json short.csv --weights lags.npz | sed -n 2p | cut -d, -f1)" 2 0
head -n 2 d.csv >short.csv
rejected "there are 1 rows, and a prediction needs the 2 rows before it" predict lags.json short.csv --weights lags.npz
rejected "'data' has 1 rows, and a window with its target takes 3" eval lags.json --data short.csv --weights lags.npz
rejected "--keep: rows after the end" predict lags.json d.csv --weights lags.npz --steps 3 --keep month
graphrun copied.json -q --save-weights copied.npz >printed
rejected "not windows of consecutive rows" predict copied.json copied.csv --steps 3 --weights copied.npz

# The split cuts the rows first: no row is in two splits. An unsorted table gives the windows of the sorted one.
awk -F, 'NR > 1 { printf "%d-%s,%s\n", 2020 + (NR > 13), substr($1, 6), $2 }' d.csv >rows
{ head -n 1 d.csv; cat rows; } >sorted.csv
{ head -n 1 d.csv; sort -t, -k2 rows; } >unsorted.csv
split='{"source": {"csv": "unsorted.csv", "x": ["passengers"], "y": "passengers", "window": {"length": 2}},
        "split": [0.5, 0.25, 0.25], "split_by": "month", "transform": {"x": ["standardize"], "y": ["standardize"]}}'
graphrun lags.json -q --set data="$split" --save-weights split.npz >printed
[ "$(awk '$1 == "rows" { print $2, $3, $4 }' printed)" = "10 4 4" ] || { cat printed; fail "rows of the splits"; }
for table in sorted unsorted; do
  graphrun predict lags.json $table.csv --set data="$split" --weights split.npz --steps 2 >$table.txt
done
cmp sorted.txt unsorted.txt || fail "the forecast depends on the order of the table"
rejected "cannot be combined with 'window', the order of time" check lags.json \
  --set data="${split/\"split_by\": \"month\"/\"stratify\": \"y\"}"
cp d.csv unsorted.csv
rejected "is the same in the rows 0 and 12" lags.json --set data="$split"

# Options that are not valid, and columns without a known future.
rejected "must be an integer" check lags.json --set 'data.train.window={"length": "2"}'
rejected "length" check lags.json --set 'data.train.window={"hop": 2}'
rejected "unknown key 'stride'" check lags.json --set 'data.train.window={"length": 2, "stride": 2}'
rejected "'train' has 24 rows, and a window with its target takes 31" lags.json --set data.train.window.length=30
rejected "a window of 3 rows is 3 numbers: (batch, 3) or (batch, 3, 1)" lags.json --set data.train.window.length=3
rejected "would put rows into one window that are not consecutive" lags.json --set data.train.missing=drop
graphrun powers.json -q --set data.train.x='["v", "u"]' --set inputs.x='["batch", 4]' --save-weights powers.npz \
  --set 'graph=["y_hat = slice(x, axis=1, start=3) * w", "loss = mean(square(y_hat - y))"]' >printed
rejected "the model does not predict 'u'" predict powers.json powers.csv --weights powers.npz --steps 2 \
  --set data.train.x='["v", "u"]' --set inputs.x='["batch", 4]' \
  --set 'graph=["y_hat = slice(x, axis=1, start=3) * w", "loss = mean(square(y_hat - y))"]'

# init: dates order the rows unless they repeat, and few rows get no split.
graphrun init sorted.csv --label passengers --window 2 -o made.json 2>printed
grep -q '"split_by": "month"' made.json || fail "init has no split_by"
graphrun made.json -q --epochs 2 --save-weights made.npz >printed
graphrun predict made.json sorted.csv --weights made.npz --steps 5 >printed
[ "$(wc -l <printed)" -eq 6 ] || fail "a forecast of init's model"
graphrun init d.csv --label passengers --window 12 -o repeated.json 2>printed
grep -q "windows follow the order of the file" printed || { cat printed; fail "no note about repeated dates"; }
grep -q split repeated.json && fail "24 rows are split"
graphrun repeated.json -q --epochs 2 >printed
rejected "the table has 24 rows, and a window with its target takes 31" init d.csv --label passengers --window 30
printf 'a\n1\n2\n\n4\n5\n' | sed 's/^$/NA/' >gaps.csv
rejected "'a' has no value in 1 rows" init gaps.csv --label a --window 2
