#!/usr/bin/env bash
# bare_packages.sh [FOLDER]: the packages that scripts/package left in FOLDER (default: build/packages) in a fresh Debian 12
# with nothing but the base system: the tarball runs as it is unpacked, the .deb files install and run.
# Needs root, debootstrap and this machine's own apt sources; not part of ctest, as it takes long and downloads.
set -euo pipefail
packages="$(readlink -f "${1:-$(dirname "$(readlink -f "$0")")/../../build/packages}")"
[ "$(id -u)" -eq 0 ] || { echo "bare_packages: must be root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "bare_packages: debootstrap is not installed" >&2; exit 2; }
# In a mount namespace of its own: whatever happens, no mount is left behind.
if [ -z "${BARE_ROOT_NAMESPACE:-}" ]; then
  exec env BARE_ROOT_NAMESPACE=1 unshare --mount "$(readlink -f "$0")" "$packages"
fi
target="$(mktemp -d)"
trap 'umount "$target/proc" || true; rm -rf --one-file-system "$target" "$target.log"' EXIT

mirror="$(apt-get indextargets --format '$(CODENAME) $(SITE)' | awk '$1 == "bookworm" { print $2; exit }')"
[ -n "$mirror" ] || { echo "bare_packages: this machine's apt has no source for bookworm" >&2; exit 2; }
debootstrap --variant=minbase bookworm "$target" "$mirror" >"$target.log" 2>&1 || { tail -n 20 "$target.log" >&2; exit 1; }
mount -t proc proc "$target/proc"  # the loader asks it where a program lies
mkdir "$target/packages" "$target/tree"
cp "$packages"/*.tar.gz "$packages"/*.deb "$target/packages"
inside() { chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -euc "$1"; }

echo "-- the tarball"
inside 'tar -xzf /packages/graphrun-*.tar.gz -C /tree --strip-components=1
  /tree/bin/graphrun --version
  /tree/bin/graphrun /tree/share/graphrun/models/digits.json --quiet'
echo "-- its studio"
inside 'exec timeout 10 /tree/bin/graphrun studio /tree/share/graphrun/models/digits.json' >"$target.log" 2>&1 &
for _ in $(seq 100); do
  address="$(sed -n 's,^http://,,p' "$target.log")"
  [ -z "$address" ] || break
  sleep 0.1
done
[ -n "$address" ] || { cat "$target.log" >&2; exit 1; }
host="${address%%/*}"
exec 3<>"/dev/tcp/${host%:*}/${host#*:}"
printf 'GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "${address#*/}" "$host" >&3
answer="$(head -n 1 <&3)"
exec 3>&-
echo "$answer"
case $answer in *" 200 "* | *" 303 "* | *" 302 "*) ;; *) exit 1 ;; esac
wait || true  # for its ten seconds
echo "-- the .deb files"
inside 'dpkg -i /packages/*.deb >/dev/null
  graphrun /usr/share/graphrun/models/xor.json --quiet --json
  graphrun devices
  dpkg -r $(dpkg-query -W -f "\${Package}\n" "libgraphrun*" graphrun) >/dev/null
  [ ! -e /usr/bin/graphrun ]'
echo "-- done"
