#!/usr/bin/env bash
# sweep_gpus.sh GRAPHRUN FAKE_CUDA MODEL: a sweep divides its runs among the GPUs of a fake machine, on which kernels do
# not run. --gpus=N uses N of them; by default, a sweep uses as many as its runs fill.
set -euo pipefail
graphrun=$1 executor=$2 model=$3
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
devices=3

# sweep NAME FLAGS: the GPUs that ran its launches are in $used, what it printed in $said.
sweep() {
  local name=$1
  shift
  said="$(FAKE_CUDA="devices=$devices,launches=$work/$name" "$graphrun" sweep "$model" "--executor=$executor" \
    --run-dir="$work/runs-$name" --epochs=40 "$@" 2>&1 >"$work/table")" || true
  used=""
  [ ! -f "$work/$name" ] || used="$(sort -u "$work/$name" | tr -d "\n")"
}
expect() {
  case "$2" in *"$3"*) return ;; esac
  printf '%s: expected "%s" in:\n%s\n' "$1" "$3" "$2" >&2
  exit 1
}

sweep few --seeds=8
expect "8 runs fill one GPU" "$said" "8 at a time
"
expect "8 runs fill one GPU" "gpus $used." "gpus 0."
sweep two --seeds=8 --gpus=2
expect "--gpus=2" "$said" "8 at a time on 2 GPUs"
expect "--gpus=2" "gpus $used." "gpus 01."
test "$(ls -d "$work"/runs-two/*/result.json | wc -l)" = 8
sweep many --seeds=300
expect "300 runs" "$said" "300 at a time on 2 GPUs"
expect "300 runs" "gpus $used." "gpus 01."
sweep large --seeds=4 --jit=off  # networks that share no launches: one for each GPU
expect "without shared launches" "$said" "3 at a time on 3 GPUs"
sweep four --seeds=8 --gpus=4
expect "--gpus=4" "$said" "has 3 GPUs"
# All runs fail while their kernels are compiled: the sweep waits for the compiler before the process ends.
code=0
XDG_CACHE_HOME=$work/cold FAKE_CUDA="devices=1,cudaMalloc=2@1,sticky" "$graphrun" sweep "$model" \
  "--executor=$executor" --seeds=4 "--run-dir=$work/runs-failed" >"$work/table" 2>&1 || code=$?
expect "failed runs with a cold cache" "exit code $code." "exit code 1."
executor=$executor:1
sweep second --seeds=300
expect "a single GPU" "$said" "264 at a time
"
expect "a single GPU" "gpus $used." "gpus 1."
executor=cpu
sweep cpu --seeds=8 --gpus=2
expect "--gpus on the cpu" "$said" "--gpus=2: 'cpu' has 0 GPUs"
