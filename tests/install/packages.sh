#!/usr/bin/env bash
# packages.sh FOLDER: the packages that scripts/package left there: what they hold, what they need, and that they run.
# lintian looks at the .deb files where it is installed. Exit code 77: there are no packages.
set -euo pipefail
folder=$1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'FAIL: %s\n' "$1" >&2
  exit 1
}

shopt -s nullglob
tarballs=("$folder"/graphrun-*.tar.gz) debs=("$folder"/*.deb)
[ ${#tarballs[@]} -gt 0 ] || [ ${#debs[@]} -gt 0 ] || { echo "skipped: no packages in $folder"; exit 77; }

# needed ALLOWED FILE...: the libraries that the files name, and the newest glibc that they want
needed() {
  local allowed=$1
  shift
  readelf -d "$@" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u >"$work/needed"
  if grep -vE "^($allowed)\." "$work/needed"; then fail "the libraries above are needed at run time"; fi
  if readelf -d "$@" | grep -E 'R(UN)?PATH' | grep -v '\[\$ORIGIN'; then fail "a search path of the build"; fi
  readelf -V "$@" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1
}
system='libgraphrun|libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|ld-linux-x86-64'

for tarball in "${tarballs[@]}"; do
  mkdir "$work/tree"
  tar -xzf "$tarball" -C "$work/tree"
  bin=$(echo "$work"/tree/*/bin/graphrun)
  root=${bin%/bin/graphrun}
  echo "$(basename "$tarball"): $(stat -c %s "$tarball") bytes, wants $(needed "$system" "$bin" "$root"/lib*/libgraphrun.so.*.*.*)"
  [ -s "$root/share/doc/graphrun/LICENSE" ] || fail "the tarball has no LICENSE"
  env -i "$bin" "$root/share/graphrun/models/digits.json" --epochs=1 --quiet >"$work/out" || fail "graphrun of the tarball"
  grep '^weights' "$work/out" >/dev/null || fail "graphrun of the tarball trains nothing"
done

[ ${#debs[@]} -eq 0 ] || mkdir "$work/root"
for deb in "${debs[@]}"; do
  dpkg-deb -x "$deb" "$work/root"
  echo "$(basename "$deb"): $(stat -c %s "$deb") bytes, depends on $(dpkg-deb -f "$deb" Depends)"
done
if [ ${#debs[@]} -gt 0 ]; then
  library=$(dirname "$(find "$work/root/usr/lib" -name 'libgraphrun.so.0')")
  needed "$system|libz" "$work/root/usr/bin/graphrun" "$library"/libgraphrun.so.*.*.*
  if readelf -d "$work/root/usr/bin/graphrun" | grep -E 'R(UN)?PATH'; then fail "a .deb has a search path of its own"; fi
  LD_LIBRARY_PATH=$library "$work/root/usr/bin/graphrun" "$work/root/usr/share/graphrun/models/digits.json" --epochs=1 \
    --quiet >/dev/null || fail "graphrun of the .deb"
  if command -v lintian >/dev/null; then
    lintian --tag-display-limit 0 --fail-on error,warning "${debs[@]}" || fail "lintian"
  else
    echo "lintian is not here: not tried"
  fi
fi
