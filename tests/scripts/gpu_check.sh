#!/usr/bin/env bash
# gpu_check.sh SCRIPT: scripts/gpu-check with a program that plans nothing: it goes through models, not the JSON Schema.
. "$(dirname "$0")/checks.sh"
cat >"$work/graphrun" <<'PROGRAM'
#!/bin/sh
[ "$1" = plan ] && { echo "cannot plan $2" >&2; exit 2; }
echo "allocations: 1 copies_to_device: 1 copies_to_host: 1 graph_launches: 1" >&2
PROGRAM
chmod +x "$work/graphrun"
mkdir "$work/models"
touch "$work/models/mnist_mlp.json" "$work/models/xor.json" "$work/models/graphrun.schema.json"
expect 0 env GRAPHRUN_MODELS="$work/models" "$1" "$work/graphrun"
says "xor"
if grep -q schema <<<"$output"; then fail "the schema is no model"; fi
