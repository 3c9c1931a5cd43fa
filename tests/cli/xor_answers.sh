#!/usr/bin/env bash
# xor_answers.sh EXAMPLE: a program of examples/ that learns the exclusive or exits with 0 and prints its four answers, each
# within 0.1.
set -euo pipefail
answers="$("$1")"
awk 'NR == 1 || NR == 4 { wrong += $0 !~ /^-?0\.0[0-9]*$/ }
     NR == 2 || NR == 3 { wrong += $0 !~ /^(0\.9|1\.0)[0-9]*$/ }
     END { exit wrong || NR != 4 }' <<<"$answers" || { printf '%s answers\n%s\n' "$(basename "$1")" "$answers"; exit 1; }
