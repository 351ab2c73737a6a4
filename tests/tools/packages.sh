# Sourced by demo.sh and test.sh: Debian packages that are needed to build, to demonstrate and to test.

PACKAGES_BUILD="gcc libc6-dev make autoconf automake pkg-config python3 libevent-dev libconfig-dev
	libsystemd-dev libjansson-dev libisal-dev libibverbs-dev librdmacm-dev libseccomp-dev libusrsctp-dev libc-ares-dev
	libssl-dev"
PACKAGES_DEMO="nginx-light curl redis-server redis-tools"
PACKAGES_TEST="check ccache openssl gnutls-bin clang clang-format libclang-rt-14-dev libasan8 libubsan1 nginx-light curl wrk redis-server redis-tools
	chromium prometheus postgresql postgresql-client iperf3 socat netcat-openbsd tshark procps iproute2 mandoc systemd dpkg-dev debhelper
	dh-apparmor apparmor selinux-policy-dev lintian zsh mariadb-server-core mariadb-client-core memcached php8.2-fpm
	nftables conntrack openssh-client openssh-server mosquitto mosquitto-clients pgbouncer nfs-ganesha nfs-ganesha-vfs libnfs-utils python3-yaml rpm ansible-core ansible-lint"
# For tests/interop/vm; the kernel itself is downloaded, not installed, and so is what its module siw is made of.
PACKAGES_VM="qemu-system-x86 busybox-static kmod cpio xz-utils zstd iproute2 ibverbs-providers ibverbs-utils rdmacm-utils
	redis-server redis-tools nginx-light curl wrk iperf3 tcpdump tshark gcc-12 make binutils libelf1
	mmdebstrap"

# For "./test.sh arm64": compiler, C library and emulator, all packages of this architecture.
PACKAGES_ARM64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"

# Those of "$@" that are not installed.
packages_missing() {
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || echo "$p"
	done
}

packages_policy=

# Undoes what packages_install changes for as long as it runs; also for the caller's trap.
packages_cleanup() {
	[ -z "$packages_policy" ] || rm -f "$packages_policy"
	packages_policy=
}

# packages_install PACKAGE...: as root; servers that come along are kept from starting by themselves.
packages_install() {
	missing=$(packages_missing "$@" | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "These packages are missing: $missing" >&2
		echo "Run this as root to have them installed, or: sudo apt-get install $missing" >&2
		return 1
	fi
	echo "installing: $missing"
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		packages_policy=/usr/sbin/policy-rc.d
		printf '#!/bin/sh\nexit 101\n' > $packages_policy && chmod 755 $packages_policy
	fi
	log=$(mktemp)
	if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
		-o Dpkg::Options::=--force-confold install $missing; } > "$log" 2>&1 < /dev/null; then
		tail -n 30 "$log" >&2
		failed=1
	else
		failed=0
	fi
	rm -f "$log"
	packages_cleanup
	return $failed
}
