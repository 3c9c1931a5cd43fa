#!/usr/bin/env bash
# bare_root.sh [FOLDER]: the proof that scripts/test and scripts/demo need nothing but a Debian 12: bootstraps one into
# FOLDER (default: a temporary one, removed afterwards), clones this repository into it and runs both there.
# Needs root, debootstrap and this machine's own apt sources; not part of ctest, as it takes long and downloads.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || { echo "bare_root: must be root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "bare_root: debootstrap is not installed" >&2; exit 2; }
# In a mount namespace of its own: whatever happens, no mount is left behind.
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

echo "bare_root: bootstrapping"
debootstrap --variant=minbase --include=git,ca-certificates bookworm "$target" "$mirror" >"$target.log" 2>&1 ||
  { tail -n 20 "$target.log" >&2; exit 1; }
# The name servers and proxy of this machine, and nothing else of it.
cp -L /etc/resolv.conf "$target/etc/resolv.conf"
apt-config dump Acquire::http::Proxy >"$target/etc/apt/apt.conf.d/80proxy"
mount -t proc proc "$target/proc"

echo "bare_root: cloning"
git clone --quiet --no-hardlinks "$source_dir" "$target/graphrun"

inside() { chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
echo "bare_root: scripts/test"
inside /graphrun/scripts/test
echo "bare_root: scripts/demo"
inside /graphrun/scripts/demo
echo "bare_root: done"
