#!/usr/bin/env bash
# run.sh SOURCE BUILD CXX CMAKE: installs BUILD into a temporary prefix, moves that prefix, and uses it as a stranger
# would: through find_package, through pkg-config, by its headers alone, and from the command line.
set -euo pipefail  # so no `grep -q` behind a pipe: it leaves before the writer has ended, who then fails
source_dir=$1 build_dir=$2 cxx=$3 cmake=$4
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
for tool in readelf nm c++filt; do command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }; done
untried=()

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

step "the page for man"
page="$prefix/share/man/man1/graphrun.1"
[ -s "$page" ] || fail "graphrun.1 is not installed"
cmp "$page" <("$prefix/bin/graphrun" help --man) || fail "graphrun.1 is not what graphrun help --man prints"
"$prefix/bin/graphrun" --help >"$work/help"
for command in $(awk '/^[A-Z][a-z]*:$/ { on = 1; next } /^[^ ]/ { on = 0 } on && NF { print $1 }' "$work/help"); do
  "$prefix/bin/graphrun" "$command" --help >>"$work/help"
done
for word in $(awk '/^[A-Z][a-z]*:$/ || /^Environment/ || /^Exit/ { on = 1; next } on && /^  [^ ]/ { print $1 }' "$work/help" |
  sed 's/,$//' | sort -u); do
  case $word in graphrun) continue ;; esac
  grep -F -- "$(printf '%s' "$word" | sed 's/-/\\-/g')" "$page" >/dev/null || fail "graphrun.1 lacks $word"
done

step "completion is where the shells look for it"
for script in bash-completion/completions/graphrun zsh/site-functions/_graphrun fish/vendor_completions.d/graphrun.fish; do
  cmp "$prefix/share/$script" <("$prefix/bin/graphrun" completion "${script%%[-/]*}") || fail "$script is another script"
done
offered="$(bash --norc -c "source '$prefix/share/bash-completion/completions/graphrun' &&
  COMP_WORDS=('$prefix/bin/graphrun' '$prefix/share/graphrun/models/digits.json' --set train.ep) COMP_CWORD=3 &&
  { _graphrun || true; } && echo \"\${COMPREPLY[@]}\"")"
[ "$offered" = "train.epochs=" ] || fail "bash offers '$offered' after --set train.ep"

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
if grep -vE '^((typeinfo|typeinfo name|vtable) for )?graphrun::|^graphrun_|^gr_[a-z_]+$|^GRAPHRUN_(0|C_[0-9]+)$' "$work/exported"; then
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
system_zlib=$(sed -n 's/^GRAPHRUN_SYSTEM_ZLIB:BOOL=ON$/|z/p' "$build_dir/CMakeCache.txt")
if grep -vE "lib(graphrun|stdc\+\+|m|gcc_s|c|dl|pthread$system_zlib)\.so|ld-linux" "$work/needed"; then
  fail "the libraries above are needed at run time"
fi

step "each public header compiles alone"
# At night; otherwise all of them in both orders, which finds a header that needs one on either side of it.
compile_headers() { "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" -x c++ -; }
(cd "$prefix/include" && printf '#include "%s"\n' graphrun/*.h) >"$work/headers"
if [ -n "${GRAPHRUN_ALL_CASES:-}" ]; then
  while read -r include; do compile_headers <<<"$include" || fail "$include needs others"; done <"$work/headers"
else
  compile_headers <"$work/headers" || fail "a public header needs a later one"
  sort -r "$work/headers" | compile_headers || fail "a public header needs an earlier one"
fi

step "a C99 program"
cc=$(command -v gcc || command -v clang || echo cc)
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror -I "$prefix/include" "$source_dir/tests/install/consumer/main.c" \
  -L "$(dirname "$library")" -lgraphrun "-Wl,-rpath,$(dirname "$library")" -o "$work/c_program" || fail "compiling C"
"$work/c_program" || fail "the program in C"
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source_dir/docs/reference/c-api.md" >"$work/page.c"
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror -I "$prefix/include" "$work/page.c" -L "$(dirname "$library")" -lgraphrun \
  "-Wl,-rpath,$(dirname "$library")" -o "$work/page" || fail "compiling the program of docs/reference/c-api.md"
(cd "$prefix/share/graphrun" && "$work/page") || fail "the program of docs/reference/c-api.md"

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
  untried+=("pkg-config: it is not installed")
fi
step "an executor as a plug-in in C"
[ -x "$prefix/bin/graphrun-conformance" ] || fail "graphrun-conformance is not installed"
model="$prefix/share/graphrun/models/digits.json"
mkdir "$work/plugins"
chmod 700 "$work" "$work/plugins"
hash_on() { "$prefix/bin/graphrun" "$model" --epochs=2 --json --quiet "$@" | grep -o '"weights_hash":"[0-9a-f]*"'; }
# Its kernels are those of cpu but for one, which rounds once: the same weights whoever compiles it.
builds=0 first=
for build in "${cc:-cc} -std=c99" "$cxx -x c++ -std=c++20" "clang++ -x c++ -std=c++20"; do
  command -v "${build%% *}" >/dev/null || continue
  builds=$((builds + 1))
  # shellcheck disable=SC2086
  $build -pedantic -O2 -Wall -Wextra -Werror -shared -fPIC -I "$prefix/include" "$source_dir/examples/matmul_plugin.c" \
    -o "$work/plugins/libgraphrun_small$builds.so" || fail "compiling the plug-in with $build"
  hash="$(hash_on "--executor=$work/plugins/libgraphrun_small$builds.so")" || fail "training on the plug-in of $build"
  [ "$hash" = "${first:=$hash}" ] || fail "the plug-in of $build leaves other weights: $hash, not $first"
  "$prefix/bin/graphrun" verify "$model" "--executor=$work/plugins/libgraphrun_small$builds.so" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "verifying the plug-in of $build"; }
done
# Without the random graphs, which conformance.plugins runs.
"$prefix/bin/graphrun-conformance" "--executor=$work/plugins/libgraphrun_small$builds.so" \
  '--gtest_filter=Values.*:Runs.*' >"$work/log" 2>&1 || { tail -n 40 "$work/log"; fail "graphrun-conformance"; }
grep -E 'PASSED  \] [0-9]{3,} tests' "$work/log" >/dev/null || fail "graphrun-conformance tested nothing"
"$prefix/bin/graphrun" devices "--plugin-path=$work/plugins" | grep "small$builds" >/dev/null || fail "devices does not list it"
[ "$(hash_on --executor=small1 "--plugin-path=$work/plugins")" = "$first" ] || fail "training on the plug-in by name"
[ "$(wc -l <"$source_dir/examples/matmul_plugin.c")" -le 200 ] || fail "the example is longer than it says"

step "the model of training.md and the program of embedding.md"
example() { awk -v open="\`\`\`$1" '$0 == open { on = 1; next } /^```/ { if (on) exit } on' "$source_dir/docs/guide/$2"; }
example json training.md >"$work/example.json"
example cpp embedding.md >"$work/example.cpp"
"$prefix/bin/graphrun" "$work/example.json" >"$work/log" 2>&1 || { cat "$work/log"; fail "the model of training.md"; }
"$cxx" -std=c++20 -I "$prefix/include" "$work/example.cpp" -L "$(dirname "$library")" -lgraphrun \
  "-Wl,-rpath,$(dirname "$library")" -o "$work/example" || fail "compiling the program of embedding.md"
"$work/example" || fail "the program of embedding.md"

step "another project fetches the sources"
"$source_dir/tests/install/fetch.sh" "$source_dir" "$cxx" "$cmake" "$work/fetched" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "FetchContent"; }

if [ ${#untried[@]} -gt 0 ]; then
  echo "skipped: all passed but $(printf '%s, ' "${untried[@]}" | sed 's/, $//')"
  exit 77
fi
step "done"
