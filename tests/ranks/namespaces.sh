#!/usr/bin/env bash
# namespaces.sh GRAPHRUN ROOT: ranks on two hosts, which are network namespaces of this one with processes of their own,
# give the weights of one process and use TCP; started by mpirun where it is installed, and by variables. Exit code 77: no permission for namespaces.
set -euo pipefail

graphrun=$(readlink -f "$1") root=$(readlink -f "$2")
first=graphrun-a$$ second=graphrun-b$$
folder=$(mktemp -d)
trap '{ ip netns del $first; ip netns del $second; } 2>/dev/null || true; rm -rf "$folder"' EXIT
{ command -v ip && ip netns add $first && ip netns add $second && ip -n $first link add gr0 type veth peer gr0 netns $second; } \
  >/dev/null 2>&1 || { echo "skipped: no permission for network namespaces"; exit 77; }
cd "$folder"
n=0
for host in $first $second; do
  n=$((n + 1))
  ip -n $host address add 10.77.0.$n/24 dev gr0 && ip -n $host link set gr0 up && ip -n $host link set lo up
done
export GRAPHRUN_THREADS=1 GRAPHRUN_JOB_SECRET=s GRAPHRUN_RENDEZVOUS=10.77.0.1:29571
unset GRAPHRUN_RANK GRAPHRUN_RANKS GRAPHRUN_TRANSPORT
alone="unshare --pid --fork --mount-proc --kill-child"
fail() { echo "namespaces: $*"; cat err.* 2>/dev/null; exit 1; }
train="$graphrun train $root/models/peaks.json --epochs=20 --shards=4"
sweep="$graphrun sweep $root/models/peaks.json --over graph.h2.units=4,5,6 --seeds 4 --epochs=60 --at-once=1 --run-dir"
$train >train.alone 2>err.alone && $sweep alone >sweep.alone 2>err.alone || fail "one process fails"

check() {  # check NAME: the outputs of train and sweep on two hosts
  [ "$(awk '$1 == "weights"' train.$1)" = "$(awk '$1 == "weights"' train.alone)" ] || fail "$1: other weights"
  diff sweep.alone sweep.$1 || fail "$1: another table"
  grep -qx "2 ranks over TCP" err.train.$1 || fail "$1: not over TCP"
  grep -q "on rank 1\$" err.sweep.$1 || fail "$1: rank 1 has trained nothing"
  for run in alone/0*; do cmp $run/weights.npz $1/${run#*/}/weights.npz || fail "$1: other weights of $run"; done
}

pair() {  # pair OUT ERR COMMAND...: on two hosts by variables
  local out=$1 err=$2 second_pid
  shift 2
  GRAPHRUN_RANK=1 GRAPHRUN_RANKS=2 ip netns exec $second $alone "$@" >out.second 2>err.second & second_pid=$!
  GRAPHRUN_RANK=0 GRAPHRUN_RANKS=2 ip netns exec $first "$@" >"$out" 2>"$err" || fail "rank 0 failed: $*"
  wait $second_pid || fail "rank 1 failed: $*"
}
pair train.variables err.train.variables $train
pair sweep.variables err.sweep.variables $sweep variables
check variables

# Without the secret, rank 0 listens on its loopback interface only.
GRAPHRUN_RANK=0 GRAPHRUN_RANKS=2 GRAPHRUN_JOB_SECRET= ip netns exec $first $train >out.none 2>err.none & pid=$!
until grep -q "only ranks of this host may join" err.none; do sleep 0.02; done
sleep 0.2
ip netns exec $second bash -c 'exec 3<>/dev/tcp/10.77.0.1/29571' 2>/dev/null && fail "another host reached rank 0 without a secret"
kill $pid
wait $pid 2>/dev/null || true

command -v mpirun >/dev/null || { echo "mpirun is not installed: hosts were tested by variables only"; exit 0; }
cat >agent <<END
#!/bin/sh
# What mpirun uses instead of ssh: agent HOST COMMAND
echo "\$1" >>"$folder/agents"
shift
exec ip netns exec $second $alone --uts sh -c "hostname second; \$*"
END
chmod +x agent
mpi() {
  ip netns exec $first mpirun --allow-run-as-root -n 2 --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent "$folder/agent" \
    --mca oob_tcp_if_include gr0 -x GRAPHRUN_THREADS -x GRAPHRUN_JOB_SECRET -x GRAPHRUN_RENDEZVOUS "$@"
}
mpi $train >train.mpirun 2>err.train.mpirun || fail "train under mpirun"
mpi $sweep mpirun >sweep.mpirun 2>err.sweep.mpirun || fail "sweep under mpirun"
check mpirun
grep -qx 10.77.0.2 agents || fail "mpirun started no process on the second host"
