#!/usr/bin/env bash
# self_test.sh: plants includes, one allowed and each forbidden kind, and expects check_includes.sh to tell them apart.
set -euo pipefail
here="$(dirname "$(readlink -f "$0")")"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
failures=0

# expect STATUS FILE INCLUDE: a tree with a good header, and FILE with `#include INCLUDE` on its third line.
expect() {
  local wanted=$1 file=$2 include=$3 output status=0
  rm -rf "$root/include" "$root/src"
  mkdir -p "$root/include/graphrun" "$root/src" "$(dirname "$root/$file")"
  printf '#include <vector>\n#include "graphrun/types.h"\n' >"$root/include/graphrun/good.h"
  printf '// planted\n\n#include %s\n' "$include" >"$root/$file"
  output=$("$here/check_includes.sh" "$root") || status=$?
  if [ "$status" -ne "$wanted" ]; then
    echo "FAIL: $file with $include: expected status $wanted, got $status: $output"
    failures=$((failures + 1))
  elif [ "$wanted" -eq 1 ] && ! grep -q "^$file:3: " <<<"$output"; then
    echo "FAIL: $file with $include: the message does not name $file:3: $output"
    failures=$((failures + 1))
  fi
}

expect 0 src/compiler/lower.cpp '"compiler/passes.h"'
expect 0 src/base/json.cpp '<nlohmann/json.hpp>'
expect 0 src/executors/ref/ref.cpp '"kernels/ref.h"'
expect 0 src/executors/novel/a.cpp '"executors/novel/b.h"'      # a new executor is a layer like the others
expect 0 src/executors/novel/a.cpp '"kernels/ref.h"'
expect 0 src/executors/registry.cpp '"executors/novel/a.h"'
expect 0 src/executors/cuda/a.cpp '"executors/common/executor_library.h"'
expect 0 src/cli/main.cpp '"cli/command_line/arguments.h"'
expect 0 src/kernels/cpu/matmul.cpp '<cmath>'

expect 1 src/graph/ir/graph.cpp '"graph/builder.h"'             # against the order inside the graph layer
expect 1 src/graph/builder.cpp '"compiler/compile.h"'            # the graph knows no compiler
expect 1 src/compiler/simplify.cpp '"graph/frontend/step/step_graph.h"' # the compiler sees graphs, not models
expect 1 src/compiler/lower.cpp '"executors/registry.h"'
expect 1 src/packing/search.cpp '"compiler/compile.h"'          # the packer sees live ranges, not graphs
expect 1 src/graph/ops/matmul.cpp '"kernels/ref.h"'             # the graph knows no kernels
expect 1 src/executors/cpu/cpu.cpp '"executors/ref/ref.h"'      # executors do not know each other
expect 1 src/executors/novel/a.cpp '"executors/ref/ref.h"'
expect 1 src/executors/novel/a.cpp '"executors/registry.h"'
expect 1 src/executors/cuda/a.cpp '"executors/cpu/cpu.h"'
expect 1 src/executors/common/a.cpp '"executors/cpu/cpu.h"'
expect 1 src/executors/cpu/cpu.cpp '"graph/ir/graph.h"'
expect 1 src/executors/cpu/cpu.cpp '"graphrun/graph_builder.h"'
expect 1 src/kernels/ref.h '"graphrun/program.h"'
expect 1 src/kernels/ref.h '<graphrun/program.h>'               # angle brackets are no way round
expect 1 src/kernels/scalar_ops.h '<cmath>'                     # compiled for devices too
expect 1 src/base/file.cpp '<nlohmann/json.hpp>'                # one file sees the JSON library
expect 1 src/graph/frontend/model.cpp '<nlohmann/json.hpp>'
expect 1 include/graphrun/bad.h '"base/json.h"'                 # public headers see public headers
expect 1 include/graphrun/bad.h '<fmt/format.h>'
expect 1 src/cli/main.cpp '"graph/ir/graph.h"'
expect 1 src/cli/main.cpp '"../graph/builder.h"'
expect 1 src/data/csv.cpp '"csv.h"'                             # not qualified
expect 1 src/data/csv.cpp '"../base/json.h"'

# Every place and prefix of the table is the beginning of a path that exists: a rule about nothing holds nothing.
cd "$here/../.."
sed -n 's/^\([^#<:]*\):\(.*\)/\1 \2/p; s/^<[^:]*:\(.*\)/\1/p' "$here/layers.txt" | tr ' ' '\n' | sed '/^$/d; /^\.\/$/d' | sort -u >"$root/places"
[ "$(wc -l <"$root/places")" -gt 20 ] || { echo "FAIL: only $(wc -l <"$root/places") places in layers.txt"; failures=$((failures + 1)); }
while read -r place; do
  if ! compgen -G "$place*" >/dev/null && ! compgen -G "src/$place*" >/dev/null && ! compgen -G "include/$place*" >/dev/null; then
    echo "FAIL: layers.txt names $place, which does not exist"
    failures=$((failures + 1))
  fi
done <"$root/places"

rm -rf "$root/src" && mkdir -p "$root/src/novel" && echo '// nothing' >"$root/src/novel/a.cpp"
if "$here/check_includes.sh" "$root" >/dev/null; then
  echo "FAIL: a file outside every layer passed"
  failures=$((failures + 1))
fi
rm -rf "$root/src" "$root/include" && mkdir "$root/src" "$root/include"
if "$here/check_includes.sh" "$root" >/dev/null 2>&1; then
  echo "FAIL: an empty tree passed"
  failures=$((failures + 1))
fi

[ "$failures" -eq 0 ] && echo "layering self-test: all planted includes told apart"
exit $((failures > 0))
