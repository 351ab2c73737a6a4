#!/bin/bash
# The Debian package: it is built of the source archive, lintian has nothing against it, and what is in it works. A
# minute of one processor. The packages stay in tests/package/deb of the build.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
cd "${top_builddir:-build}" || exit 1
export top_builddir=$PWD LC_ALL=C.UTF-8
PATH=$PATH:/usr/sbin
deb=$PWD/tests/package/deb
case $(./config.status --config) in
*--enable-sanitizers* | *--enable-tsan* | *--enable-fuzzing* | *--enable-coverage*)
	echo '1..0 # SKIP a package is built without sanitizers and coverage: the test belongs to another build'
	exit 0 ;;
esac
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

"$here/build" "$deb" > "$tmp/log" 2>&1 < /dev/null
status=$?
if [ $status -eq 3 ]; then
	echo "1..0 # SKIP $(tail -n 1 "$tmp/log")"
	exit 0
fi
echo 1..14
n=0
# result NAME COMMAND...
result() {
	local name=$1 out
	shift
	n=$((n + 1))
	if out=$("$@" 2>&1); then
		echo "ok $n - $name"
	else
		printf '%s\n' "$out" | sed 's/^/# /'
		echo "not ok $n - $name"
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

built() {
	[ $status -eq 0 ] || { tail -n 60 "$tmp/log"; return 1; }
	! grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error):' "$tmp/log"
}
result 'the packages are built, without a warning of the compiler' built
[ $status -eq 0 ] || { for i in $(seq 12); do skip 'what is in it' 'there is none'; done; exit 0; }

same_version() {
	local want have
	want=$(sed -n "s/^PACKAGE_VERSION = //p" Makefile)
	have=$(dpkg-deb -f "$deb"/smcrd_*.deb Version)
	[ "$have" = "$want" ] || { echo "the package is $have, the program $want"; return 1; }
}
result 'the version of the package is that of the program' same_version

# As root lintian warns about that, too.
without_complaint() {
	local said
	said=$(lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$deb"/*.changes 2>&1) || { echo "$said"; return 1; }
	[ -z "$(grep -E '^[EW]: ' <<< "$said")" ] || { echo "$said"; return 1; }
}
if command -v lintian > /dev/null; then
	result 'lintian has no error and no warning' without_complaint
else
	skip 'lintian has no error and no warning' 'lintian is not installed'
fi

# Each program's build-id leads to its symbols.
debug_symbols() {
	local program id
	for program in usr/sbin/smcrd usr/bin/smcrctl; do
		id=$(readelf -n "$tmp/root/$program" | sed -n 's/.*Build ID: *//p')
		dpkg-deb -c "$deb"/smcrd-dbgsym_*.deb | grep -q "/${id:0:2}/${id:2}.debug$" || { echo "none for $program"; return 1; }
	done
}
dpkg-deb -x "$deb"/smcrd_*.deb "$tmp/root"
dpkg-deb -e "$deb"/smcrd_*.deb "$tmp/control"
if command -v readelf > /dev/null; then
	result 'there is a package with debug symbols' debug_symbols
else
	skip 'there is a package with debug symbols' 'readelf is not installed'
fi

# The package's own steps: the user, the directory, the unit, which waits for a configuration.
finishes() {
	local word
	for word in systemd-sysusers 'systemd-tmpfiles.*--create smcrd.conf' 'deb-systemd-helper enable' daemon-reload; do
		grep -q -- "$word" "$tmp/control/postinst" || { echo "postinst has no $word"; return 1; }
	done
	grep -qx 'ConditionPathExists=/etc/smcrd/smcrd.conf' "$tmp/root/lib/systemd/system/smcrd.service" &&
		[ ! -e "$tmp/root/etc/smcrd/smcrd.conf" ] && [ -d "$tmp/root/etc/smcrd/conf.d" ] && [ -f "$tmp/root/usr/lib/sysusers.d/smcrd.conf" ] &&
		[ -f "$tmp/root/usr/lib/tmpfiles.d/smcrd.conf" ]
}
result 'the package makes the user, and starts nothing without a configuration' finishes

# What root does at an upgrade and at a purge, when the user smcrd has left links where it may write: they are not followed. The
# steps of the scripts are run, in a root of their own.
follows_no_link() {
	local root=$tmp/scene
	mkdir -p "$root"/{etc/smcrd,run/smcrd,victim,dev} || return 1
	printf 'root:x:0:0::/:/bin/sh\nsmcrd:x:990:990::/:/bin/false\n' > "$root/etc/passwd"
	printf 'root:x:0:\nsmcrd:x:990:\n' > "$root/etc/group"
	echo secret > "$root/victim/file"
	ln -s ../../victim/file "$root/run/smcrd/control"
	ln -s ../../victim "$root/run/smcrd/directory"
	ln "$root/victim/file" "$root/run/smcrd/hard"
	ln -s ../../victim/file "$root/etc/smcrd/smcrd.conf"
	chown -Rh 990:990 "$root/run/smcrd" && chown -R 0:0 "$root/victim" && chmod 700 "$root/victim" || return 1
	find "$root/victim" -printf '%P %m %u %g %s\n' > "$tmp/before"
	systemd-tmpfiles --root="$root" --create --remove --clean "$tmp/root/usr/lib/tmpfiles.d/smcrd.conf" || return 1
	# Of the script what is the package's own: paths are those of the scene.
	sed "s|/etc/smcrd|$root/etc/smcrd|g; s|groupdel|: &|" "$here/../../debian/smcrd.postrm" > "$tmp/postrm"
	sh -e "$tmp/postrm" purge || return 1
	[ ! -L "$root/etc/smcrd/smcrd.conf" ] || { echo 'the link is left'; return 1; }
	find "$root/victim" -printf '%P %m %u %g %s\n' | diff "$tmp/before" - || return 1
	[ "$(stat -c '%u %a' "$root/run/smcrd")" = '990 755' ]
}
if [ "$(id -u)" = 0 ] && command -v systemd-tmpfiles > /dev/null; then
	result 'links of the user smcrd lead root nowhere at an upgrade and a purge' follows_no_link
else
	skip 'links of the user smcrd lead root nowhere at an upgrade and a purge' 'that takes root and systemd-tmpfiles'
fi

# Scripts touch nothing below a directory that smcrd may write to: what root would do there by name, smcrd could turn elsewhere.
touches_nothing_of_smcrd() {
	local at
	at=$(grep -nE '/run/smcrd|/var/lib/smcrd|chown|chmod|rm -r' "$tmp"/control/{preinst,postinst,prerm,postrm} 2> /dev/null |
		grep -v 'deb-systemd') || true
	[ -z "$at" ] || { echo "$at"; return 1; }
	[ "$(grep -vcE '^(#|$)' "$tmp/root/usr/lib/tmpfiles.d/smcrd.conf")" = 1 ] &&
		grep -qE '^d /run/smcrd ' "$tmp/root/usr/lib/tmpfiles.d/smcrd.conf" &&
		dpkg-deb -c "$deb"/smcrd_*.deb | awk '$2 != "root/root" { print; bad = 1 } END { exit bad }'
}
result 'what root does as the package is changed touches nothing that smcrd may write to' touches_nothing_of_smcrd

# Loaded before the unit starts, which names it; kept as the administrator has changed it.
profile() {
	local root=$tmp/root at
	apparmor_parser --skip-kernel-load --skip-cache --base /etc/apparmor.d "$root/etc/apparmor.d/smcrd" || return 1
	grep -qx /etc/apparmor.d/smcrd "$tmp/control/conffiles" || { echo 'no configuration file'; return 1; }
	grep -qx 'AppArmorProfile=-smcrd' "$root/lib/systemd/system/smcrd@.service" || { echo 'the unit does not name it'; return 1; }
	at=$(grep -nE 'apparmor_parser|deb-systemd-invoke' "$tmp/control/postinst" | head -n 1)
	[[ $at = *apparmor_parser* ]] || { echo "it comes late: $at"; return 1; }
}
if command -v apparmor_parser > /dev/null; then
	result 'the AppArmor profile is taken by its parser, and loaded first' profile
else
	skip 'the AppArmor profile is taken by its parser, and loaded first' 'apparmor is not installed'
fi

# Some distributions have no SCTP in user space; Debian has, and the package must not lose it unnoticed.
libraries() {
	local library
	for library in libcares libusrsctp libseccomp libssl libibverbs librdmacm libsystemd; do
		readelf -d "$tmp/root/usr/sbin/smcrd" | grep -q "NEEDED.*$library" || { echo "$library is not used"; return 1; }
	done
}
if command -v readelf > /dev/null; then
	result 'no library was left out' libraries
else
	skip 'no library was left out' 'readelf is not installed'
fi

takes_example() {
	"$tmp/root/usr/sbin/smcrd" -t -f "$tmp/root/etc/smcrd/smcrd.conf.example"
}
result 'the smcrd in it takes the example in it' takes_example

if command -v curl > /dev/null; then
	result 'README.md works with the programs in it' \
		env PATH="$tmp/root/usr/sbin:$tmp/root/usr/bin:$PATH" "$here/../../debian/tests/pair"
else
	skip 'README.md works with the programs in it' 'curl is not installed'
fi

if command -v ansible-lint > /dev/null; then
	result 'ansible-lint has nothing against the role' ansible-lint --offline -q --nocolor "$here/../../packaging/ansible"
else
	skip 'ansible-lint has nothing against the role' 'it is not installed'
fi
if [ "$(id -u)" = 0 ] && command -v ansible-playbook > /dev/null; then
	result 'the Ansible role installs and configures it' "$here/ansible" "$deb"/smcrd_*.deb
else
	skip 'the Ansible role installs and configures it' 'that takes root and ansible-playbook'
fi

# The last one: it adds to what is unpacked.
if [ "$(id -u)" = 0 ] && command -v curl > /dev/null; then
	result 'the container image runs as Kubernetes runs it' "$here/container.py" "$tmp/root"
else
	skip 'the container image runs as Kubernetes runs it' 'that takes root and curl'
fi
