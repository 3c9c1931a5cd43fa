#!/usr/bin/env bash
# device_code.sh SOURCE BUILD: device code that is compiled in two folders has the same bytes once it is stripped, as it is
# in packages: what libgraphrun-cuda holds does not depend on where it was built. One file by the build's own command; all
# of them, which takes minutes, with GRAPHRUN_ALL_CASES set.
set -euo pipefail
source_dir=$1 build=$2
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
skip() {
  echo "skipped: $1"
  exit 77
}
python="$(dirname "$(readlink -f "$0")")/../python.sh"
command -v strip >/dev/null || skip "strip is not installed"
"$python" -c '' || exit $?

for folder in one another/folder; do  # each with the sources, and the include folders of layers that lead to them
  mkdir -p "$work/$folder/build"
  cp -r "$source_dir/include" "$source_dir/src" "$work/$folder"
  cp -rP "$build/layers" "$work/$folder/build"
  find "$work/$folder/build/layers" -type l | while read -r link; do
    ln -sfn "$(readlink "$link" | sed "s,^$source_dir/,$work/$folder/,")" "$link"
  done
done

names=(sources)
[ -z "${GRAPHRUN_ALL_CASES:-}" ] || names=($(cd "$source_dir/src/kernels/cuda" && ls -- *.cu | sed 's/\.cu$//'))
for name in "${names[@]}"; do
  file=$source_dir/src/kernels/cuda/$name.cu
  command="$("$python" - "$build/compile_commands.json" "$file" <<'END'
import json, sys
print(next((c["command"] for c in json.load(open(sys.argv[1])) if c["file"] == sys.argv[2]), ""))
END
)"
  [ -n "$command" ] || { echo "the build has no command for $file" >&2; exit 1; }
  case $command in *orig_src_path_name*) ;; *) skip "this nvcc takes no other path for a source" ;; esac
  for folder in one another/folder; do
    here="${command//$build/$work/$folder/build}"
    here="${here//$source_dir/$work/$folder}"
    (cd "$work/$folder/build" && eval "${here% -o *} -o $name.o")
    strip --strip-unneeded "$work/$folder/build/$name.o"
  done
  cmp "$work/one/build/$name.o" "$work/another/folder/build/$name.o"
done
