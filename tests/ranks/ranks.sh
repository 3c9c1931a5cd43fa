#!/usr/bin/env bash
# ranks.sh GRAPHRUN ROOT [KILLS]: docs/guide/ranks.md: processes give the weights of one process; a killed rank ends all
# with exit code 4, and fewer ranks resume; strangers, wrong secrets and bad variables do not join.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2") kills=${3:-3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GRAPHRUN_THREADS=1
unset GRAPHRUN_JOB_SECRET GRAPHRUN_RENDEZVOUS GRAPHRUN_RANK GRAPHRUN_RANKS GRAPHRUN_TRANSPORT
port=$((20000 + 3 * ($$ % 2900)))  # and the next one; sweep.sh may run at the same time and uses the third
fail() { echo "ranks: $*"; exit 1; }
weights() { awk '$1 == "weights" { print $2 }' "$1"; }

# The commands of the guide, in a folder of their own.
mkdir guide && cp "$root/models/xor.json" guide/model.json
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside && /^graphrun/' "$root/docs/guide/ranks.md" >commands
[ "$(wc -l <commands)" -eq 10 ] || fail "the guide has other commands"
sed -i -E '/--gpus|train .*--executor=cuda/d' commands  # the last lines of this file run those
n=0
while read -r program rest; do
  n=$((n + 1))
  (cd guide && "$graphrun" $rest </dev/null) >"printed.$n" 2>&1 || { cat "printed.$n"; fail "failed: $program $rest"; }
done <commands
[ "$(cat printed.* | awk '$1 == "weights" { print $2 }' | sort -u | wc -l)" -eq 1 ] || fail "the guide's runs have other weights"
grep -q "2 GPUs are faster than one" printed.4 || fail "plan does not say from when GPUs pay"
grep -q "Two ranks are faster than one with as many cores" printed.5 || fail "plan does not say from when ranks pay"

# The job for Kubernetes, with an address of this host.
awk '/^```yaml/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/docs/guide/ranks.md" >job.yaml
mkdir job && cp "$root/models/xor.json" job/model.json
ranks=$(sed -n 's/.*GRAPHRUN_RANKS, value: "\(.*\)".*/\1/p' job.yaml)
read -r program words < <(sed -n 's/.*command: \[\(.*\)\]/\1/p' job.yaml | tr -d ,)
[ "$program" = graphrun ] && grep -q "completions: $ranks\$" job.yaml || fail "the job has other ranks than its pods"
[ "$(grep -o 'GRAPHRUN_[A-Z_]*' job.yaml | sort | tr '\n' ' ')" = "GRAPHRUN_JOB_SECRET GRAPHRUN_RANK GRAPHRUN_RANKS GRAPHRUN_RENDEZVOUS " ] ||
  fail "the job sets other variables"
for ((rank = ranks - 1; rank >= 0; rank--)); do
  (cd job && GRAPHRUN_RANK=$rank GRAPHRUN_RANKS=$ranks GRAPHRUN_RENDEZVOUS=127.0.0.1:$((port + 1)) \
    GRAPHRUN_JOB_SECRET=s "$graphrun" $words) >"printed.$((100 + rank))" 2>&1 &
done
wait
[ "$(weights printed.100)" = "$(weights printed.1)" ] || { cat printed.10?; fail "the job has other weights than the guide's runs"; }

# Processes of a launcher: one file, one output.
model=$root/models/peaks.json
"$graphrun" train "$model" --epochs=20 --shards=4 --save-weights=alone.npz >alone 2>/dev/null
for transport in "" tcp; do
  for rank in 1 2 3 0; do
    env GRAPHRUN_RANK=$rank GRAPHRUN_RANKS=4 GRAPHRUN_JOB_SECRET=s GRAPHRUN_RENDEZVOUS=127.0.0.1:$port GRAPHRUN_TRANSPORT=$transport \
      "$graphrun" train "$model" --epochs=20 --shards=4 --save-weights=together.npz >"out.$rank" 2>"err.$rank" &
  done
  wait
  [ -s out.0 ] || { cat err.0; fail "rank 0 printed nothing"; }
  [ ! -s out.1 ] && [ ! -s err.2 ] && [ ! -s out.3 ] || fail "another rank than 0 prints"
  [ "$(weights out.0)" = "$(weights alone)" ] || fail "four processes have other weights than one"
  case $transport in tcp) name=TCP ;; *) name="shared memory" ;; esac
  grep -qx "4 ranks over $name" err.0 || { cat err.0; fail "not over $name"; }
done

# Rank 0 is killed.
for transport in "" tcp; do
  rm -f err.*
  for rank in 0 1; do
    env GRAPHRUN_RANK=$rank GRAPHRUN_RANKS=2 GRAPHRUN_JOB_SECRET=s GRAPHRUN_RENDEZVOUS=127.0.0.1:$port GRAPHRUN_TRANSPORT=$transport \
      "$graphrun" train "$model" --epochs=1000000000 >"out.$rank" 2>"err.$rank" &
    pids[rank]=$!
  done
  until grep -qs "ranks over" err.0; do sleep 0.05; done
  sleep 0.5
  kill -9 ${pids[0]}
  code=0
  timeout 5 tail --pid=${pids[1]} -f /dev/null || fail "rank 1 still runs 5 s after rank 0 was killed"
  wait ${pids[1]} || code=$?
  [ $code -eq 4 ] && [ "$(grep -c . err.1)" -le 2 ] && grep -q "rank 0 is gone" err.1 || { cat err.1; fail "exit code $code without rank 0"; }
  wait ${pids[0]} && fail "rank 0 was not killed"
done

# Another rank is killed.
"$graphrun" train "$model" --epochs=300 --shards=8 --quiet >whole
for ((i = 0; i < kills; i++)); do
  rm -rf ck
  ((i % 2)) && export GRAPHRUN_TRANSPORT=tcp || unset GRAPHRUN_TRANSPORT
  "$graphrun" train "$model" --epochs=1000000000 --ranks=4 --checkpoint-dir ck --checkpoint-every 20 --quiet >out 2>err &
  pid=$!
  until [ "$(ls ck 2>/dev/null | wc -l)" -ge 2 ]; do sleep 0.05; done
  victim=$(pgrep -P $pid | sed -n "$((i % 3 + 1))p")
  kill -9 "$victim"
  code=0
  timeout 5 tail --pid=$pid -f /dev/null || fail "the ranks still run 5 s after one was killed"
  wait $pid || code=$?
  [ $code -eq 4 ] || { cat err; fail "exit code $code after a rank was killed"; }
  [ "$(grep -c . err)" -le 2 ] && grep -qE "rank [1-3] is gone" err || { cat err; fail "no line about the lost rank"; }
done
unset GRAPHRUN_TRANSPORT
[ -z "$(find /dev/shm -name '*graphrun*' 2>/dev/null)" ] || fail "memory is left in /dev/shm"
last=$(ls ck/checkpoint-* | tail -1 | grep -oE '[0-9]+' | tail -1)
steps=$((10#$last + 40))
"$graphrun" train "$model" --epochs=$steps --shards=8 --quiet >whole
"$graphrun" train "$model" --epochs=$steps --ranks=2 --checkpoint-dir ck --resume --quiet >resumed 2>err || { cat err; fail "no resume"; }
[ "$(weights resumed)" = "$(weights whole)" ] || fail "two ranks resume four with other weights"

# Strangers on the port, wrong secrets, other numbers of ranks.
at() { env GRAPHRUN_RANK=$1 GRAPHRUN_RANKS=$2 GRAPHRUN_JOB_SECRET=${3:-} GRAPHRUN_RENDEZVOUS=127.0.0.1:$port "$graphrun" train "$model" --epochs=5; }
at 0 2 right >out 2>err &
pid=$!
sleep 0.3
exec 3<>/dev/tcp/127.0.0.1/$port
head -c 100 /dev/urandom >&3 || true
for wrong in "1 2 wrong" "1 4 right" "1 2 "; do
  at $wrong >stranger 2>&1 && fail "a rank with '$wrong' joined"
  grep -q "does not accept rank 1" stranger || { cat stranger; fail "no reason for '$wrong'"; }
done
at 1 2 right
wait $pid || { cat err; fail "strangers ended the job"; }
exec 3>&-

rejected() {
  local message=$1
  shift
  if "$@" >printed 2>&1; then fail "accepted: $*"; fi
  grep -qF -- "$message" printed || { cat printed; fail "not printed: $message"; }
}
rejected "expected a number" env GRAPHRUN_RANK=x GRAPHRUN_RANKS=2 "$graphrun" "$model"
rejected "rank 5 of 2 ranks" env GRAPHRUN_RANK=5 GRAPHRUN_RANKS=2 "$graphrun" "$model"
rejected "GRAPHRUN_TRANSPORT: expected tcp" env GRAPHRUN_TRANSPORT=rdma "$graphrun" "$model" --ranks=2
rejected "rank 1 has ended before it joined" "$graphrun" train <(cat "$model") --ranks=2
rejected "expected HOST:PORT" env GRAPHRUN_RANK=1 GRAPHRUN_RANKS=2 GRAPHRUN_RENDEZVOUS=here "$graphrun" "$model"
rejected "the launcher started 2" env GRAPHRUN_RANK=1 GRAPHRUN_RANKS=2 "$graphrun" "$model" --ranks=4
rejected "3 ranks cannot share 8 shards" "$graphrun" "$model" --ranks=3
rejected "not a power of two" "$graphrun" "$model" --shards=6

# Ranks on GPUs: one shard each. Without a GPU: the reason.
"$graphrun" plan "$model" --shards=4 --executor=cuda --target=h200 >printed || fail "no plan of shards for a GPU"
grep -q "4 GPUs are faster than one" printed && grep -q "at least 1 message of" printed || { cat printed; fail "plan does not say from when GPUs pay"; }
rejected "--gpus starts threads" "$graphrun" "$model" --ranks=2 --gpus=2
rejected "--gpus starts threads" env GRAPHRUN_RANK=0 GRAPHRUN_RANKS=2 "$graphrun" "$model" --gpus=2
rejected "3 is not a power of two" "$graphrun" "$model" --shards=3 --gpus=2
for how in --gpus=2 "--ranks=2 --executor=cuda"; do
  code=0
  "$graphrun" train "$model" --epochs=5 $how >printed 2>&1 || code=$?
  [ $code -eq 4 ] && grep -qE "no CUDA device|not installed|libnccl|same GPU" printed || [ $code -eq 0 ] ||
    { cat printed; fail "exit code $code of $how"; }
done
