#!/usr/bin/env bash
# commands.sh GRAPHRUN PAGE.md FILE...: types every command of the page (its ```sh blocks) in a folder that has nothing but
# the models and examples of the checkout. They must succeed and leave these files. Blocks ```shell need other files.
set -euo pipefail

graphrun=$(readlink -f "$1") page=$(readlink -f "$2")
shift 2
models=$(readlink -f "$(dirname "$0")/../../models")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$models" models
ln -s "$(dirname "$models")/examples" examples
commands=$(awk '$0 == "```sh" { inside = 1; next } /^```/ { inside = 0 } inside' "$page")
[ -n "$commands" ] || { echo "commands: the page has none"; exit 1; }
PATH="$(dirname "$graphrun"):$PATH" bash -euo pipefail -c "$commands"
for file in "$@"; do
  [ -s "$file" ] || { echo "commands: $file was not written"; exit 1; }
done
