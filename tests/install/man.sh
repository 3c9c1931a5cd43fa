#!/usr/bin/env bash
# man.sh GRAPHRUN: man shows the page that graphrun help --man prints and that is installed. Exit code 77: there is no man.
set -euo pipefail
command -v man >/dev/null || { echo "skipped: man is not installed"; exit 77; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/man/man1"
"$1" help --man >"$work/man/man1/graphrun.1"
MANPATH="$work/man" man -P cat graphrun >"$work/page"
grep 'EXIT STATUS' "$work/page" >/dev/null || { cat "$work/page"; echo "man graphrun shows no exit codes"; exit 1; }
