#!/usr/bin/env bash
# hardening.sh BUILD: what docs/internals/security.md says of the binaries of an optimised build, read from them.
set -euo pipefail
build=$1 failed=0
for tool in readelf objdump; do command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }; done
expect() {  # expect FILE WHAT PATTERN TEXT
  if ! grep -Eq "$3" <<<"$4"; then
    printf 'FAIL: %s: no %s\n' "$1" "$2" >&2
    failed=1
  fi
}
for file in "$build/bin/graphrun" "$build"/lib/libgraphrun.so "$build"/lib/libgraphrun_cuda.so; do
  [ -e "$file" ] || continue
  name=$(basename "$file")
  dynamic=$(readelf -dW "$file") segments=$(readelf -lW "$file") symbols=$(readelf --dyn-syms -W "$file")
  expect "$name" "immediate binding" 'BIND_NOW|FLAGS_1.*NOW' "$dynamic"
  expect "$name" "read-only relocations" GNU_RELRO "$segments"
  expect "$name" "stack that cannot be executed" 'GNU_STACK.* RW +0' "$segments"
  expect "$name" "stack protector" __stack_chk_fail "$symbols"
  if [ "$(uname -m)" = x86_64 ]; then
    # The mark of the whole file is lost where the C runtime's own objects lack it, as on Debian.
    expect "$name" "landing pads of -fcf-protection" '^[1-9][0-9]{2,}$' "$(objdump -d "$file" | grep -c endbr64)"
  fi
  if grep -E 'R(UN)?PATH' <<<"$dynamic" | grep -E '\[:|::|:\]|\[\]'; then
    printf 'FAIL: %s: an empty entry in the search path is the current folder\n' "$name" >&2
    failed=1
  fi
done
symbols=$(readelf --dyn-syms -W "$build/bin/graphrun" "$build/lib/libgraphrun.so")
expect "graphrun and libgraphrun.so" "fortified function" '__[a-z]+_chk' "$(grep -v __stack_chk_fail <<<"$symbols")"
expect graphrun "position independence" 'Type: +DYN' "$(readelf -hW "$build/bin/graphrun")"
exit $failed
