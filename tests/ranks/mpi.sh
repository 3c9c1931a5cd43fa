#!/usr/bin/env bash
# mpi.sh GRAPHRUN ROOT [MPIRUN]: --ranks=mpi gives the weights of one process, under the mpirun of the MPI that the
# plug-in was built with; errors end all ranks. Exit code 77: this build has no plug-in.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2") mpirun=${3:-}
lib=$(dirname "$graphrun")/../lib
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0  # MPI keeps memory
export GRAPHRUN_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_btl_vader_single_copy_mechanism=none
unset GRAPHRUN_RANK GRAPHRUN_RANKS GRAPHRUN_RENDEZVOUS GRAPHRUN_JOB_SECRET
fail() { echo "mpi: $*"; exit 1; }
weights() { awk '$1 == "weights" { print $2 }' "$1"; }
model=$root/models/digits.json

rejected() {  # rejected CODE MESSAGE COMMAND...
  local code=0 expected=$1 message=$2
  shift 2
  "$@" >printed 2>&1 || code=$?
  [ $code -eq "$expected" ] || { cat printed; fail "exit code $code: $*"; }
  grep -qF -- "$message" printed || { cat printed; fail "not printed: $message"; }
}

# Without the plug-in.
mkdir -p bare/bin bare/lib
cp "$graphrun" bare/bin
cp -P "$lib"/libgraphrun.so* bare/lib
rejected 4 "lib/libgraphrun_mpi.so" bare/bin/graphrun train "$model" --ranks=mpi
touch bare/lib/libgraphrun_mpi.so
rejected 4 "libgraphrun_mpi.so does not load" bare/bin/graphrun train "$model" --ranks=mpi

[ -e "$lib/libgraphrun_mpi.so" ] || { echo "skipped: CMake found no MPI"; exit 77; }
[ -n "$mpirun" ] && command -v "$mpirun" >/dev/null || { echo "skipped: no mpirun"; exit 77; }
rejected 2 "mpirun has not started this process" "$graphrun" train "$model" --ranks=mpi
rejected 2 "--ranks=mpi is for a single network" "$graphrun" sweep "$model" --seeds 2 --run-dir runs --ranks=mpi
case $(readelf -d "$lib/libgraphrun_mpi.so") in
  *libmpi.so*) other="PMI_SIZE=2 PMI_RANK=0" ;;
  *) other="OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0" ;;
esac
rejected 4 "which has not started this process" env $other "$graphrun" train "$model" --ranks=mpi
! readelf -d "$lib/libgraphrun.so" "$graphrun" | grep -i 'NEEDED.*mpi' || fail "graphrun itself needs MPI"

mpi() { timeout 100 "$mpirun" "$@"; }
"$graphrun" train "$model" --epochs=2 --shards=4 >alone 2>/dev/null
for ranks in 1 2 4; do
  mpi -n $ranks "$graphrun" train "$model" --epochs=2 --shards=4 --ranks=mpi >out 2>err || { cat err; fail "$ranks ranks"; }
  [ "$(weights out)" = "$(weights alone)" ] || { cat out err; fail "$ranks ranks have other weights, or more of them print"; }
  grep -q "$ranks ranks over MPI (" err || { cat err; fail "not over MPI"; }
done

# Errors: of all ranks, of rank 0 after the training, of one rank in the middle of it; a killed rank.
train="$graphrun train $model --ranks=mpi"
mpi -n 1 $train --epochs=2 : -n 1 $train --epochs=2 --set train.seed=5 >printed 2>&1 && fail "ranks train different models"
[ "$(grep -c "rank 1 has another model and data than rank 0" printed)" -eq 1 ] || { cat printed; fail "no line about the other model"; }
mpi -n 2 $train --epochs=2 --losses=/dev/full >printed 2>&1 && fail "losses were written to a full disk"
grep -q "/dev/full" printed || { cat printed; fail "no line about the full disk"; }
epochs=$((1000000000 + $$))  # finds the processes
mpi -n 2 $train --epochs=$epochs >out.killed 2>err.killed & pid=$!
until grep -qs "ranks over" err.killed; do kill -0 $pid || { cat err.killed; fail "no training to kill"; }; sleep 0.05; done
kill -9 "$(pgrep -f "^$graphrun train .*--epochs=$epochs" | tail -1)" || fail "no rank to kill"
code=0
wait $pid || code=$?
[ $code -ne 0 ] && [ $code -ne 124 ] || fail "exit code $code after a rank was killed"
! pgrep -f "^$graphrun train .*--epochs=$epochs" || fail "a rank still runs"
