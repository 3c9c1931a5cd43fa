#!/usr/bin/env bash
# sanitize.sh TOOL TEST_DEVICE: a representative set of the device tests under compute-sanitizer: memcheck, racecheck,
# initcheck or synccheck. Each buffer is an allocation of its own meanwhile. Exits with 77 and the reason where there is
# no device or no compute-sanitizer; GRAPHRUN_REQUIRE_DEVICE=1 makes that a failure.
set -euo pipefail
tool=$1 tests=$2
skip() {
  echo "skipped: $1"
  [ "${GRAPHRUN_REQUIRE_DEVICE:-}" = "" ] && exit 77
  exit 1
}
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || sanitizer=$(ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
[ -n "$sanitizer" ] || skip "there is no compute-sanitizer on the PATH or in /usr/local/cuda/bin"
probe=$("$tests" --gtest_filter=Device.ComparisonsAndWhere 2>&1) || { echo "$probe"; exit 1; }
! grep -q SKIPPED <<<"$probe" || skip "$(grep -o 'no CUDA device.*' <<<"$probe" | head -n 1)"

# Left out: what counts allocations or host memory, and what takes long under a sanitizer and shows it nothing new.
filter='Device.*:DeviceModels.*:-Device.ARunAllocates*:Device.UnaryOps:Device.BinaryOps*:Device.Repeated*:Device.TwoRuns*'
filter+=':Device.Beyond*:Device.OutOfMemory*:Device.HostMemory*:Device.AProfile*:Device.ALongRun*'
models=${GRAPHRUN_TEST_MODELS:-$(dirname "$(readlink -f "$0")")/../../models}
small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT
cp "$models/xor.json" "$small"
export GRAPHRUN_DEBUG_ARENA=split GRAPHRUN_TEST_MODELS=$small
# In the loop of a graph synccheck takes every barrier for divergent, in kernels of cuBLAS as in ours, and racecheck's own
# process crashes now and then (docs/internals/cuda.md).
if [ "$tool" = synccheck ] || [ "$tool" = racecheck ]; then export GRAPHRUN_DEBUG_GRAPHS=off; fi
"$sanitizer" --tool "$tool" --error-exitcode 9 "$tests" --gtest_filter="$filter"
