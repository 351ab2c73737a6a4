#!/bin/bash
# system.sh CACHE: makes CACHE/system/ with a small Debian that boots: systemd, and the libraries that the package smcrd
# depends on, so that apt can install it there without a network. Needs root, for files of several users. The last line
# says whether it was there; status 3: it cannot be had, the last line says why.
set -eu
PATH=$PATH:/usr/sbin:/sbin
cache=${1:?usage: system.sh CACHE}
packages=systemd-sysv,dbus,apparmor,python3,iproute2,kmod,procps,libconfig9,libevent-core-2.1-7,libevent-extra-2.1-7,libibverbs1,libisal2,libjansson4
packages=$packages,librdmacm1,libseccomp2,libusrsctp2,libc-ares2
tmp=$cache/.system.$$

cannot() { echo "$*"; exit 3; }

mkdir -p "$cache"
exec 9> "$cache/lock"
flock -w 600 9
if [ "$(cat "$cache/system.packages" 2> /dev/null)" = "$packages" ] && [ -x "$cache/system/sbin/init" ]; then
	echo "Debian with systemd, from the cache"
	exit
fi
command -v mmdebstrap > /dev/null || cannot "not installed: mmdebstrap"
[ "$(id -u)" -eq 0 ] || cannot "making a system that boots needs root"
# The release and the mirror are the host's.
. /etc/os-release
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2> /dev/null | grep -m 1 '/debian$' || true)
trap 'rm -rf "$tmp" "$tmp.log"' EXIT
timeout 600 mmdebstrap --variant=apt --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' "$VERSION_CODENAME" "$tmp" "${mirror:-http://deb.debian.org/debian}" \
	> "$tmp.log" 2>&1 < /dev/null || cannot "mmdebstrap: $(grep -m 1 '^E:' "$tmp.log" || tail -n 1 "$tmp.log")"
rm -f "$tmp/etc/dpkg/dpkg.cfg.d/99mmdebstrap"		# what was left out of this system is not left out of the package
rm -rf "$cache/system"
mv "$tmp" "$cache/system"
echo "$packages" > "$cache/system.packages"
echo "Debian with systemd, downloaded and unpacked"
