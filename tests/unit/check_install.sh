#!/bin/bash
# "make install" puts everything where it belongs, and what it installed works: the daemon takes the installed example
# as it is. Everything goes below a directory of its own.
cd "${top_builddir:-build}" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS
dirs=(prefix=/usr exec_prefix=/usr bindir=/usr/bin sbindir=/usr/sbin sysconfdir=/etc mandir=/usr/share/man
	datarootdir=/usr/share datadir=/usr/share systemdsystemunitdir=/usr/lib/systemd/system
	sysusersdir=/usr/lib/sysusers.d tmpfilesdir=/usr/lib/tmpfiles.d)
expected=(/usr/sbin/smcrd /usr/bin/smcrctl /etc/smcrd/smcrd.conf.example /usr/share/man/man8/smcrd.8
	/usr/share/man/man8/smcrctl.8 /usr/share/man/man5/smcrd.conf.5 /usr/lib/systemd/system/smcrd.service
	/usr/lib/sysusers.d/smcrd.conf /usr/lib/tmpfiles.d/smcrd.conf)
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

echo "1..$((${#expected[@]} + 3))"
result 'make install' make -s install DESTDIR="$tmp" "${dirs[@]}"
for f in "${expected[@]}"; do
	result "$f" test -s "$tmp$f"
done
result 'smcrd -t takes the example' "$tmp/usr/sbin/smcrd" -t -f "$tmp/etc/smcrd/smcrd.conf.example"
make -s uninstall DESTDIR="$tmp" "${dirs[@]}" > "$tmp/log" 2>&1
result 'make uninstall leaves nothing' test -z "$(find "$tmp" -type f ! -path "$tmp/log")"
