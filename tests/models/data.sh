#!/usr/bin/env bash
# data.sh MODELS: the data files of models/ are those that models/data/README.md tells of, with the checksums it has; where
# scikit-learn is installed for $GRAPHRUN_PYTHON or python3, its digits are ours. Exit code 77: it is not.
set -euo pipefail
cd "$1/data"

sums="$(awk '/^```text/ { on = 1; next } /^```/ { on = 0 } on' README.md)"
sha256sum --check --strict --quiet <<<"$sums"
listed="$(awk '{ print $2 }' <<<"$sums" | sort)"
here="$(find . -type f ! -name README.md ! -name digits.py -printf '%P\n' | sort)"
[ "$listed" = "$here" ] || { printf 'README.md lists\n%s\nbut here are\n%s\n' "$listed" "$here"; exit 1; }
for name in $listed; do
  awk '/^## /{ exit } { print }' README.md | grep -F "\`$name\`" | grep -qF 'creativecommons.org/licenses/' ||
    { echo "README.md names no licence of $name"; exit 1; }
done

python="${GRAPHRUN_PYTHON:-python3}"
find_table='import importlib.util, pathlib; s = importlib.util.find_spec("sklearn"); print(pathlib.Path(s.origin).parent / "datasets" / "data" / "digits.csv.gz" if s else "")'
table="$("$python" -c "$find_table" 2>/dev/null || true)"
if [ ! -e "$table" ]; then
  echo "skipped: the checksums are right; scikit-learn, whose digits they are, is not installed for $python"
  exit 77
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$python" -B digits.py "$table"
"$python" -B digits.py "$table" "$work" >/dev/null
for name in digits-images-idx3-ubyte.gz digits-labels-idx1-ubyte.gz; do
  cmp <(gzip -dc "$name") <(gzip -dc "$work/$name")
done
if "$python" -B digits.py <(printf '1,2,3\n' | gzip) >"$work/said" 2>&1; then
  echo "digits.py took another table for the digits"
  exit 1
fi
