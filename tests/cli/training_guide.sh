#!/usr/bin/env bash
# training_guide.sh GRAPHRUN ROOT: the commands of docs/guide/training.md that readme.sh does not run: losses, initial
# values, optimizers and diagnostics; of inspection.md, the importance of columns and the coefficients of linear models.
# Bad settings are rejected with the reason.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2")
guide=$root/docs/guide/training.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "training_guide: $*"; exit 1; }
graphrun() { "$graphrun" "$@"; }
# run SECTION COMMANDS: the commands of the first sh block below the heading.
run() {
  awk -v heading="## $1" '$0 == heading { found = 1 } found && /^```sh/ { inside = 1; next }
                          inside && /^```/ { exit } inside' "$guide" >commands
  [ "$(wc -l <commands)" -eq "$2" ] || fail "$1 has other commands"
  execute "$1"
}
execute() {
  { declare -p graphrun; declare -f graphrun; cat commands; } >script
  bash -euo pipefail script >printed 2>&1 || { cat printed; fail "a command of '$1' failed"; }
}
# rejected MESSAGE ARGUMENTS
rejected() {
  local message=$1
  shift
  if graphrun "$@" >printed 2>&1; then fail "accepted: $*"; fi
  grep -qF -- "$message" printed || { cat printed; fail "not printed: $message"; }
}

awk '/^```json/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$guide" >xor.json

run "Losses, initial values and optimizers" 3
[ "$(grep -c '^weights ' printed)" -eq 3 ] || fail "three runs do not print three weights"
[ "$(grep '^weights ' printed | sort -u | wc -l)" -eq 3 ] || fail "two settings give the same weights"
awk '$1 == "loss" && $2 > 1e-6 { exit 1 }' printed || { cat printed; fail "xor is not learned"; }
rejected "delta must be a number > 0, got 0" xor.json --set graph.loss="loss = huber(y_hat, y, delta=0)"
rejected "must be a number > 0, got 0" xor.json --set train.clip_value=0
rejected "lr is the initial step size" xor.json --set train.optimizer.rprop.lr='{"cosine": {"from": 1, "to": 0, "epochs": 9}}'
rejected "there is no initializer named he_norml" xor.json --set parameters.W1.init=he_norml
rejected "he_normal needs two extents (in, out), got (4)" xor.json --set parameters.b1.init=he_normal

run "Your own loss" 2
[ "$(grep '^weights ' printed | sort -u | wc -l)" -eq 2 ] || fail "two losses give the same weights"
awk '$1 == "mse" && $2 > 1e-6 { exit 1 }' printed || { cat printed; fail "xor is not learned"; }
rejected "hint: graphrun help ops lists the functions" xor.json --set graph.loss="loss = mean(logcosh(y_hat - y))"

# The source has test rows of its own; the others are split in two (docs/reference/data.md).
graphrun "$root/models/logistic_regression.json" --epochs 100 --set data.split=[0.8,0.2] \
  --set 'train.threshold={"by": "f1"}' >printed 2>&1 || { cat printed; fail "split in two"; }
grep -q 'train *validation *test' printed || { cat printed; fail "no validation split"; }
graphrun check "$root/models/logistic_regression.json" --set data.split=[0.8,0.2] >printed 2>&1 ||
  { cat printed; fail "check of a split in two"; }

run "Double precision" 2
grep -q '^verified: ' printed || { cat printed; fail "fp64 is not verified"; }
rejected "its parameters are f64, from a training in fp64, and the model is not in fp64" eval xor.json --weights xor64.npz
rejected "precision is \"fp32\" or \"tf32\" or \"fp64\"" xor.json --set train.precision=f64
rejected "its input 1 is f64" plan xor.json --executor=cuda --set train.precision=fp64
echo '{"x": [[0, 1]]}' >one.json
[ "$(graphrun predict xor.json one.json --weights xor64.npz --set train.precision=fp64 | tail -n 1 | wc -c)" -gt 15 ] ||
  fail "predictions have the digits of f32"

# lr follows the cosine of the step before the report: 0.105 is its middle.
grep -E '^graphrun (train xor.json --log|plot run.csv --columns lr)' "$guide" >commands
[ "$(wc -l <commands)" -eq 2 ] || fail "Logs has other commands"
execute Logs
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { epochs = epochs " " $at["epoch"]
           expected = 0.2 - 0.19 * (1 - cos(3.141592653589793 * ($at["step"] - 1) / 2000)) / 2
           difference = $at["lr"] - expected
           if (difference > 1e-6 || difference < -1e-6) { print $at["lr"] " is not " expected; exit 1 } }
         END { if (epochs != " 1 2 5 10 20 50 100 200 500 1000 2000") { print epochs; exit 1 } }' run.csv || fail "log"
graphrun plot run.csv >printed
grep -q lr printed && fail "the plot of a log shows lr"
graphrun train xor.json --epochs 4 --log run.csv -q --set train.optimizer.momentum.lr='{"runtime": 0.25}' >printed
[ "$(tail -n 1 run.csv | cut -d, -f6)" = 0.25 ] || fail "a runtime learning rate is not in the log"

# Rows sorted by class or by a number; not after shuffling, nor in one batch.
awk 'BEGIN { print "a,b,kind,price"
             for (i = 0; i < 60; i++) print i * 7 % 10 "," i * 37 % 90 "," (i < 20 ? "x" : i < 40 ? "y" : "z") "," 3 * i }' >sorted.csv
for label in kind price; do
  graphrun init sorted.csv --label $label -o $label.json 2>printed
  graphrun $label.json --epochs 2 --set data.split=null --set data.stratify=null --set train.early_stopping=null --set train.shuffle=false >printed 2>&1
  grep -qF "sorted by 'y', so each batch sees only a part of its values" printed || { cat printed; fail "sorted by $label"; }
  for setting in train.shuffle=true train.batch=60; do
    graphrun $label.json --epochs 2 --set data.split=null --set data.stratify=null --set train.early_stopping=null --set train.shuffle=false \
      --set $setting >printed 2>&1
    if grep -q "sorted by" printed; then fail "sorted by $label with $setting"; fi
  done
done

# Values far outside the training rows: by column transforms and by those of the whole input, from files and pipes.
awk 'BEGIN { print "rooms,area,price"
             for (i = 0; i < 60; i++) { r = 1 + i * 7 % 5; a = 30 + i * 37 % 90; print r "," a "," 20 + 3 * r + 2.5 * a } }' >houses.csv
printf 'rooms,area\n3,80\n3,5000\n90,-4000\n' >new.csv
run "Rows unlike the training rows" 3
cp printed shown
graphrun predict houses.json - --weights houses.npz <new.csv >>shown 2>&1
for told in "'area' is far outside the training rows in 2 of 3 rows" "'rooms' is far outside the training rows in 1 of 3 rows"; do
  [ "$(grep -cF -- "$told" shown)" -eq 2 ] || { cat shown; fail "not told twice: $told"; }
done
graphrun plot houses.json --weights houses.npz --what surface >printed
grep -q "^ *rooms$" printed && ! grep -q standardize printed || { cat printed; fail "the surface does not name its columns in the units of the table"; }
# The range of area is 30 to 119: with minmax, 209 is outside by more than its width, and 208 is not.
cat >minmax.json <<END
{"format": 1, "data": {"train": {"csv": "houses.csv", "x": ["rooms", "area"], "y": "price"}, "transform": {"x": ["minmax"]}},
 "inputs": {"x": ["batch", 2], "y": ["batch", 1]}, "graph": ["p = dense(x, units=1)", "loss = mse(p, y)"],
 "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}}}
END
graphrun minmax.json -q --save-weights minmax.npz >printed
printf 'rooms,area\n3,208\n3,209\n' >new.csv
graphrun predict minmax.json new.csv --weights minmax.npz >printed 2>&1
grep -qF "'area' is far outside the training rows in 1 of 2 rows" printed || { cat printed; fail "minmax"; }
printf 'rooms,area\n3,80\n' >new.csv
graphrun predict minmax.json new.csv --weights minmax.npz 2>printed >shown
[ ! -s printed ] || { cat printed; fail "a warning about a usual row"; }

# price = 20 + 3 rooms + 2.5 area + 30 (Bern), 0 (Ulm) or -20 (Oslo), and a column that it does not depend on
guide=${guide%/*}/inspection.md
awk 'BEGIN { print "rooms,area,city,other,price"; split("Bern Ulm Oslo", city); split("30 0 -20", more)
             for (i = 0; i < 120; i++) {
               r = 1 + i * 7 % 5; a = 30 + i * 37 % 90; c = 1 + i * 5 % 7 % 3
               print r "," a "," city[c] "," i * 11 % 13 "," 20 + 3 * r + 2.5 * a + more[c] } }' >houses.csv
rm houses.json
run "Importance of columns" 3
awk '/^rmse on test/ { found = 1 } found && NR > 1 { print $1 }' printed | head -6 | tr '\n' ' ' >order
[ "$(cat order)" = "rmse column area city rooms other " ] || { cat printed; fail "the order of the columns"; }
rejected "'auc' is not a metric of the model" eval houses.json --weights houses.npz --importance auc
rejected "it has loss, rmse, mae, r2" eval houses.json --weights houses.npz --importance auc
rejected "is not linear in its inputs" eval houses.json --weights houses.npz --coefficients
grep -v '"name": "h"' houses.json | sed 's/"inputs": \["h"\]/"inputs": ["x"]/' >line.json
graphrun line.json -q --epochs 2000 --set train.early_stopping=null --set train.optimizer.adam.lr=0.01 \
  --save-weights line.npz >printed
$(grep '^graphrun eval line.json' "$guide") >printed
awk '$1 == "rooms" || $1 == "area" || $1 ~ /^city=/ || $1 == "(intercept)" || $1 == "other" { of[$1] = $2 }
     function near(x, y) { return x - y < 0.05 && y - x < 0.05 }
     END { exit !(near(of["rooms"], 3) && near(of["area"], 2.5) && near(of["other"], 0) &&
                  near(of["city=Bern"] - of["city=Oslo"], 50) && near(of["(intercept)"] + of["city=Ulm"], 20)) }' printed ||
  { cat printed; fail "coefficients"; }
graphrun eval line.json --weights line.npz --coefficients --importance loss --json | grep -q '"importance":{"split":"test","metric":"loss","columns":\[{"column":"area",.*"coefficients":{"(intercept)":' ||
  fail "JSON"
