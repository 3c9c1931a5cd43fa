#!/usr/bin/env bash
# sweep.sh GRAPHRUN ROOT: ranks share the runs of a sweep: each run has the files of a run alone; a killed rank loses no
# finished run; ranks with another folder, sweep or secret get none.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GRAPHRUN_THREADS=1 GRAPHRUN_JOB_SECRET=s GRAPHRUN_RENDEZVOUS=127.0.0.1:$((20000 + 3 * ($$ % 2900) + 2))
fail() { echo "sweep: $*"; cat err.* 2>/dev/null; exit 1; }
cp "$root/models/peaks.json" model.json
# sweep FOLDER EPOCHS: 24 runs
sweep() { exec "$graphrun" sweep model.json --over graph.h2.units=4,5,6 --seeds 8 --at-once=1 --run-dir "$1" --epochs="$2"; }
# on RANK RANKS FOLDER EPOCHS: the same on a rank
on() { GRAPHRUN_RANK=$1 GRAPHRUN_RANKS=$2 sweep "$3" "$4" >"out.$1" 2>"err.$1"; }
same() {
  local run
  for run in alone/0*; do
    for file in weights.npz model.json; do cmp "$run/$file" "$1/${run#*/}/$file" || fail "$1 has another $file"; done
  done
}
unset GRAPHRUN_RANK GRAPHRUN_RANKS
epochs=60
(sweep alone $epochs) >table 2>err.alone || fail "no sweep"

# Three ranks; only rank 0 prints.
on 1 3 three $epochs & on 2 3 three $epochs & (on 0 3 three $epochs) || fail "rank 0 of 3 failed"
wait
diff table out.0 || fail "three ranks print another table"
same three
for rank in 1 2; do
  grep -q "on rank $rank\$" err.0 || fail "rank $rank has trained nothing"
  [ ! -s out.$rank ] && [ ! -s err.$rank ] || fail "rank $rank prints"
done

# --ranks starts them; with --halving, rung by rung; the networks of an ensemble.
(unset GRAPHRUN_JOB_SECRET GRAPHRUN_RENDEZVOUS
 sweep_halving() { "$graphrun" sweep model.json --over graph.h2.units=2:8:+1 --sort train.loss --halving=2 \
   --epochs=40 --run-dir "$@"; }
 sweep_halving halving-alone >halving.1 2>err.halving || fail "no sweep with --halving"
 sweep_halving halving --ranks=3 >halving.3 2>err.halving || fail "no sweep with --halving on ranks"
 diff halving.1 halving.3 || fail "ranks choose other settings"
 "$graphrun" train model.json --epochs=9 --ensemble 4 -o networks --ranks=2 >out.ensemble 2>err.ensemble || fail "no ensemble")
[ "$(ls networks/*.npz | wc -l)" -eq 4 ] || fail "an ensemble of 4 networks has other files"

# Rank 1 is killed while it trains: rank 0 trains its run.
rm -f err.*; on 0 2 killed $epochs & root_rank=$!
on 1 2 killed $epochs & other=$!
until grep -qs "on rank 1" err.0; do kill -0 $root_rank || fail "the sweep ended early"; sleep 0.02; done
kill -9 $other
wait $root_rank || fail "rank 0 failed without rank 1"
wait $other && fail "rank 1 was not killed"
grep -q "rank 1 is gone; other ranks train its runs" err.0 || fail "no message about rank 1"
diff table out.0 || fail "the table without rank 1 is another one"
same killed

# Rank 0 is killed: rank 1 ends with exit code 4, and the same command trains the missing runs only.
rm -f err.*; on 0 2 root $epochs & root_rank=$!
on 1 2 root $epochs & other=$!
until grep -qs "on rank 1" err.0; do kill -0 $root_rank || fail "the sweep ended early"; sleep 0.02; done
kill -9 $root_rank
code=0
timeout 5 tail --pid=$other -f /dev/null || fail "rank 1 still runs 5 s after rank 0 was killed"
wait $other || code=$?
wait $root_rank && fail "rank 0 was not killed"
[ $code -eq 4 ] && grep -q "rank 0 is gone" err.1 && grep -q "the same command" err.1 || fail "rank 1 ends with exit code $code"
grep -l "\"interrupted\":false" root/*/result.json | xargs ls -i >finished || fail "no run had ended before rank 0 was killed"
(sweep root $epochs) >out.again 2>err.again || fail "the sweep does not resume"
diff table out.again || fail "the resumed sweep has another table"
same root
while read -r inode file; do [ "$(stat -c %i "$file")" = "$inode" ] || fail "$file was trained again"; done <finished

# SIGTERM of rank 0 ends all.
rm -f err.*; on 0 2 stopped 2000000000 & root_rank=$!
on 1 2 stopped 2000000000 & other=$!
until [ "$(ls stopped/*/run.json 2>/dev/null | wc -l)" -ge 2 ]; do sleep 0.02; done
kill -TERM $root_rank
code=0
timeout 20 tail --pid=$other -f /dev/null || fail "rank 1 still runs after rank 0 was stopped"
wait $root_rank || code=$?
wait $other || true
[ $code -eq 130 ] && grep -q "the same command resumes" err.0 || fail "rank 0 ends with exit code $code after SIGTERM"

# Another folder, another sweep; rank 0 trains all runs.
mkdir -p elsewhere && cp model.json elsewhere
(cd elsewhere && on 1 2 apart 5) & (on 0 2 apart 5) || fail "rank 0 failed"
wait
grep -q "rank 1: 'apart' is not the folder of rank 0" err.0 || fail "rank 1 has another folder"
on 1 2 other 6 & (on 0 2 other 5) || fail "rank 0 failed"
wait
grep -q "rank 1: 'other' holds another sweep" err.0 || fail "rank 1 has another sweep"
code=0
"$graphrun" sweep model.json --epochs=5 --seeds 4 --jobs=2 --ranks=2 --run-dir jobs >out.jobs 2>err.jobs || code=$?
[ $code -eq 2 ] && grep -q "does not go with ranks" err.jobs || fail "--jobs with ranks"
