#!/usr/bin/env bash
# run.sh SOURCE BUILD CXX CMAKE: installs BUILD into a temporary prefix, moves that prefix, and uses it as a stranger
# would: through find_package, through pkg-config, by its headers alone, and from the command line.
set -euo pipefail  # so no `grep -q` behind a pipe: it leaves before the writer has ended, who then fails
source_dir=$1 build_dir=$2 cxx=$3 cmake=$4
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH

step() { printf -- '-- %s\n' "$1"; }
fail() {
  printf 'FAIL: %s\n' "$1" >&2
  exit 1
}

step "install, then move the prefix"
"$cmake" --install "$build_dir" --prefix "$work/first" >/dev/null
prefix="$work/moved"
mv "$work/first" "$prefix"
library="$(find "$prefix" -name libgraphrun.so)"
[ -n "$library" ] || fail "libgraphrun.so is not installed"
pc_dir="$(dirname "$(find "$prefix" -name graphrun.pc)")"
for wanted in bin/graphrun include/graphrun/session.h share/graphrun/models; do
  [ -e "$prefix/$wanted" ] || fail "$wanted is not installed"
done
readelf -d "$library" | grep 'SONAME.*libgraphrun\.so\.[0-9]' >/dev/null || fail "libgraphrun.so has no versioned SONAME"

step "the installed command line finds its library"
"$prefix/bin/graphrun" --version | grep '[0-9]\.[0-9]\.[0-9]' >/dev/null || fail "graphrun --version prints no version"
if readelf -d "$prefix/bin/graphrun" "$library" | grep -E 'R(UN)?PATH' | grep -F "$build_dir"; then
  fail "a search path into the build tree was installed"
fi

step "the installed models find their data"
[ -e "$prefix/share/graphrun/models/data/README.md" ] || fail "the data came without their licences"
for model in digits linear_regression logistic_regression; do
  env -u GRAPHRUN_DATA "$prefix/bin/graphrun" "$prefix/share/graphrun/models/$model.json" --epochs=1 --quiet >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "models/$model.json"; }
done

step "only names of graphrun are exported"
nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' >"$work/mangled"
[ -s "$work/mangled" ] || fail "nothing is exported"
c++filt <"$work/mangled" >"$work/exported"
if grep -vE '^((typeinfo|typeinfo name|vtable) for )?graphrun::|^graphrun_|^gr_[a-z_]+$|^GRAPHRUN_(0|C_1)$' "$work/exported"; then
  fail "the names above are exported and are not ours"
fi
if grep -E 'nlohmann|fmt::' "$work/exported"; then
  fail "the names above mention a library that we keep to ourselves"
fi

if grep -E '::Impl(::|$)' "$work/exported"; then
  fail "the names above are of classes that no header defines"
fi

step "programs need no other library than the system's"
readelf -d "$library" "$prefix/bin/graphrun" | grep NEEDED >"$work/needed"
if grep -vE 'lib(graphrun|z|stdc\+\+|m|gcc_s|c|dl|pthread)\.so|ld-linux' "$work/needed"; then
  fail "the libraries above are needed at run time"
fi

step "each public header compiles alone"
for header in "$prefix"/include/graphrun/*.h; do
  name="graphrun/$(basename "$header")"
  echo "#include <$name>" |
    "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" -x c++ - || fail "$name needs others"
done

step "a C99 program"
"${cxx%++*}cc" --version >/dev/null 2>&1 || cc=cc
"${cc:-${cxx%++*}cc}" -std=c99 -pedantic -Wall -Wextra -Werror -I "$prefix/include" "$source_dir/tests/install/consumer/main.c" \
  -L "$(dirname "$library")" -lgraphrun "-Wl,-rpath,$(dirname "$library")" -o "$work/c_program" || fail "compiling C"
"$work/c_program" || fail "the program in C"

step "find_package(graphrun)"
"$cmake" -S "$source_dir/tests/install/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; fail "configuring"; }
"$cmake" --build "$work/consumer" >"$work/log" 2>&1 || { cat "$work/log"; fail "building the consumer"; }
"$work/consumer/consumer" || fail "the consumer built with find_package"

if command -v pkg-config >/dev/null; then
  step "pkg-config graphrun"
  export PKG_CONFIG_PATH="$pc_dir"
  # The flags are meant to be split into words.
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 $(pkg-config --cflags graphrun) "$source_dir/tests/install/consumer/main.cpp" \
    $(pkg-config --libs graphrun) "-Wl,-rpath,$(dirname "$library")" -o "$work/by_pkg_config" ||
    fail "building through pkg-config"
  "$work/by_pkg_config" || fail "the consumer built through pkg-config"
else
  step "pkg-config is not here: not tried"
fi
step "the examples of README.md"
example() { awk -v open="\`\`\`$1" '$0 == open { on = 1; next } /^```/ { on = 0 } on' "$source_dir/README.md"; }
example json >"$work/example.json"
example cpp >"$work/example.cpp"
"$prefix/bin/graphrun" "$work/example.json" >"$work/log" 2>&1 || { cat "$work/log"; fail "the model in README.md"; }
"$cxx" -std=c++20 -I "$prefix/include" "$work/example.cpp" -L "$(dirname "$library")" -lgraphrun \
  "-Wl,-rpath,$(dirname "$library")" -o "$work/example" || fail "compiling the program in README.md"
"$work/example" || fail "the program in README.md"

step "done"
