# shellcheck shell=bash
# lib.sh: what scripts/test and scripts/demo share. Sourced, not run; expects `set -euo pipefail`.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

say() { printf '== %s\n' "$*"; }
die() {
  printf 'scripts: %s\n' "$*" >&2
  exit 1
}

# Installs those of the named Debian packages that are missing, and says which.
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "packages: no apt-get here; these are taken to be present: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ "${#missing[@]}" -eq 0 ]; then
    say "packages: all present"
    return
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "not root and no sudo; please install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "packages: installing ${missing[*]}"
  local log
  log="$(mktemp)"
  if ! { "${as_root[@]}" apt-get -qq update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    cat "$log" >&2
    die "apt-get could not install them (its words are above)"
  fi
  rm -f "$log"
}

build_packages=(build-essential cmake ninja-build git pkg-config libfmt-dev nlohmann-json3-dev zlib1g-dev
  libpng-dev libfreetype-dev fonts-liberation libgtest-dev)

# One compiler process per core, limited by memory (up to 2 GB each).
job_count() {
  local cores kilobytes by_memory
  cores="$(nproc)"
  kilobytes="$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)"
  by_memory=$((${kilobytes:-64000000} / 2000000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo "${JOBS:-$((cores < by_memory ? cores : by_memory))}"
}

# configure PRESET BUILD_DIR [OPTION...]
configure() {
  local preset=$1 build_dir=$2 launcher=()
  shift 2
  if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}"  # or it does not cache with precompiled headers
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  (cd "$root" && cmake --preset "$preset" -B "$build_dir" "${launcher[@]}" "$@" >"$build_dir.log" 2>&1) || {
    cat "$build_dir.log" >&2
    die "cmake could not configure $build_dir (its words are above)"
  }
}

# Reads what Ninja prints and says how far the build is, at every tenth.
build_progress() {
  awk -F'[][/]' '/^\[[0-9]+\/[0-9]+\]/ && int(10 * $2 / $3) > tenths { tenths = int(10 * $2 / $3); print "   built " 10 * tenths " %"; fflush() }'
}

# One line about CUDA, from what cmake just said: is the toolkit here, and is the CUDA executor built?
say_cuda() {  # BUILD_DIR, right after configure
  local version
  version="$(sed -n 's/^-- CUDA: \([0-9][0-9.]*\),.*/\1/p' "$1.log")"
  if [ -n "$version" ]; then
    say "CUDA toolkit: $version, building the CUDA executor"
  else
    say "CUDA toolkit: not found, building without"
  fi
}

# Result of a ctest run: test-report.awk over its output and its log.
test_report() {  # summary|output PRINTED BUILD_DIR
  awk -v part="$1" -f "$root/scripts/test-report.awk" "$2" "$3/Testing/Temporary/LastTest.log"
}

# Data sets of tests and demo, if they are on this machine: GRAPHRUN_DATA, else next to the checkout.
if [ -z "${GRAPHRUN_DATA:-}" ] && [ -d "$root/../shared/data" ]; then
  GRAPHRUN_DATA="$(cd "$root/../shared/data" && pwd)"
fi
if [ -n "${GRAPHRUN_DATA:-}" ]; then
  export GRAPHRUN_DATA
  export GRAPHRUN_TEST_DATA="${GRAPHRUN_TEST_DATA:-$GRAPHRUN_DATA}"  # tests look here
fi
