#!/usr/bin/env bash
# bare_root.sh [FOLDER]: proves that scripts/test and scripts/demo need nothing but Debian 12. Bootstraps one into FOLDER
# (default: a temporary folder, removed afterwards), clones this repository into it and runs both there. Prints the seconds
# that each part took. Needs root, debootstrap and this machine's own apt sources; .ci/run runs it, ctest does not.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || { echo "bare_root: must be root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "bare_root: debootstrap is not installed" >&2; exit 2; }
# A mount namespace of its own leaves no mount behind, whatever happens.
if [ -z "${BARE_ROOT_NAMESPACE:-}" ]; then
  exec env BARE_ROOT_NAMESPACE=1 unshare --mount "$(readlink -f "$0")" "$@"
fi
source_dir="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"

if [ $# -gt 0 ]; then
  mkdir -p "$1"
  target="$(readlink -f "$1")"
else
  target="$(mktemp -d)"
  trap 'umount "$target/proc" || true; rm -rf --one-file-system "$target" "$target.log"' EXIT
fi

# The archive that this machine's apt takes bookworm from.
mirror="$(apt-get indextargets --format '$(CODENAME) $(SITE)' | awk '$1 == "bookworm" { print $2; exit }')"
[ -n "$mirror" ] || { echo "bare_root: this machine's apt has no source for bookworm" >&2; exit 2; }

SECONDS=0
echo "bare_root: bootstrapping Debian 12 (about a minute)"
debootstrap --variant=minbase --include=git,ca-certificates bookworm "$target" "$mirror" >"$target.log" 2>&1 ||
  { tail -n 20 "$target.log" >&2; exit 1; }
# The name servers and proxy of this machine, and nothing else of it.
cp -L /etc/resolv.conf "$target/etc/resolv.conf"
apt-config dump Acquire::http::Proxy >"$target/etc/apt/apt.conf.d/80proxy"
mount -t proc proc "$target/proc"
git clone --quiet --no-hardlinks "$source_dir" "$target/graphrun"
times="bootstrap $SECONDS s"

for script in scripts/test scripts/demo; do
  echo "bare_root: $script"
  SECONDS=0
  chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "/graphrun/$script" ||
    { echo "bare_root: $script failed" >&2; exit 1; }
  times+=", $script $SECONDS s"
done
echo "bare_root: passed ($times)"
