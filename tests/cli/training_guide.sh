#!/usr/bin/env bash
# training_guide.sh GRAPHRUN ROOT: the commands of docs/guide/training.md that readme.sh does not run: losses, initial
# values, optimizers and diagnostics. Bad settings are rejected with the reason.
set -euo pipefail

graphrun=$(readlink -f "$1") guide=$(readlink -f "$2")/docs/guide/training.md
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
rejected "log_every and log_spaced are both given" xor.json --set train.log_spaced=true --set train.log_every=3
