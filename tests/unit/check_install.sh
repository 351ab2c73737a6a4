#!/bin/bash
# "make install" puts everything where it belongs, and what it installed works: the daemon takes the installed example
# as it is. Everything goes below a directory of its own.
src=$(cd "${top_srcdir:-.}" && pwd) || exit 1
cd "${top_builddir:-build}" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS
dirs=(prefix=/usr exec_prefix=/usr bindir=/usr/bin sbindir=/usr/sbin sysconfdir=/etc mandir=/usr/share/man
	datarootdir=/usr/share datadir=/usr/share systemdsystemunitdir=/usr/lib/systemd/system
	sysusersdir=/usr/lib/sysusers.d tmpfilesdir=/usr/lib/tmpfiles.d docdir=/usr/share/doc/smcrd)
expected=(/usr/sbin/smcrd /usr/bin/smcrctl /etc/smcrd/smcrd.conf.example /usr/share/man/man8/smcrd.8
	/usr/share/man/man8/smcrctl.8 /usr/share/man/man5/smcrd.conf.5 /usr/lib/systemd/system/smcrd.service /usr/lib/systemd/system/smcrd@.service
	/usr/lib/systemd/system/smcrd-programs.slice /usr/lib/systemd/system/smcrd-programs.service /usr/bin/smcrd-run
	/usr/lib/sysusers.d/smcrd.conf /usr/lib/tmpfiles.d/smcrd.conf /usr/share/doc/smcrd/README.md
	/usr/share/doc/smcrd/examples/smcrd.socket
	/usr/share/bash-completion/completions/smcrctl /usr/share/bash-completion/completions/smcrd
	/usr/share/zsh/site-functions/_smcrctl /usr/share/zsh/site-functions/_smcrd /usr/lib/systemd/catalog/smcrd.catalog)
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

# Documents that manual pages and README.md send their readers to.
documents_named() {
	grep -oh '/usr/share/doc/smcrd/[a-z./-]*[a-z]' "$src"/man/*.[0-9]
	grep -oh 'doc/[a-z-]*\.md' "$src/README.md" | sed 's,^doc,/usr/share/doc/smcrd,'
}
documents() {
	local f lacks=0
	for f in $(documents_named | sort -u); do
		case $f in */architecture.md) continue ;; esac	# for developers, as README.md says
		[ -s "$tmp$f" ] || { echo "no $f"; lacks=1; }
	done
	return $lacks
}
# An installation on this machine, and not one for a package, has steps left.
says_what_is_left() {
	local said word
	said=$(make -s install "${dirs[@]/=/=$tmp/here}" 2>&1) || { echo "$said"; return 1; }
	for word in "systemd-sysusers $tmp/here/usr/lib/sysusers.d/smcrd.conf" 'systemctl daemon-reload' 'journalctl --update-catalog' 'usermod -aG smcrd' \
		"$tmp/here/etc/smcrd/smcrd.conf"; do
		[[ $said == *"$word"* ]] || { printf 'not said: %s\n%s\n' "$word" "$said"; return 1; }
	done
}

# An RPM is made of what was installed, without compiling it once more: rpmbuild compares its files with those that the spec names. Macros
# that only Fedora has are given here.
version=$(sed -n 's/^PACKAGE_VERSION = //p' Makefile)
rpm_builds() {
	local rpm=$tmp/here/rpm said d
	mkdir -p "$rpm/build/smcrd-$version" && cp "$src/COPYING" "$rpm/build/smcrd-$version" || return 1
	said=$(rpmbuild -bb --quiet --nodeps --noprep --nocheck --define "_topdir $rpm" --define "_builddir $rpm/build" \
		--define '_unitdir /usr/lib/systemd/system' --define '_sysusersdir /usr/lib/sysusers.d' \
		--define '_tmpfilesdir /usr/lib/tmpfiles.d' --define '_libdir /usr/lib' --define 'debug_package %{nil}' \
		--define '__os_install_post %{nil}' --define 'configure :' --define 'make_build :' \
		--define "make_install mkdir -p %{buildroot}; cp -a $tmp/etc $tmp/usr %{buildroot}" "$src/packaging/smcrd.spec" 2>&1)
	rpm=$(find "$rpm/RPMS" -name "smcrd-$version-*.rpm")
	[ -n "$rpm" ] && [ -z "$said" ] || { echo "$said"; return 1; }
	rpm -qlp "$rpm" > "$tmp/here/list"
	while read -r d; do
		grep -qx "$d" "$tmp/here/list" || { echo "the directory $d belongs to no package"; return 1; }
	done < <(cd "$tmp" && find etc usr -type d -name smcrd -printf '/%p\n')
}

echo "1..$((${#expected[@]} + 7))"
result 'make install' make -s install DESTDIR="$tmp" "${dirs[@]}"
result 'a package has no steps left' test -z "$(make -s install DESTDIR="$tmp" "${dirs[@]}" | grep systemctl)"
result 'make install says what is left to do' says_what_is_left
result 'the documents that are named' documents
for f in "${expected[@]}"; do
	result "$f" test -s "$tmp$f"
done
result 'smcrd -t takes the example' "$tmp/usr/sbin/smcrd" -t -f "$tmp/etc/smcrd/smcrd.conf.example"
if command -v rpmbuild > /dev/null; then
	result 'an RPM by the spec has all that is installed' rpm_builds
else
	n=$((n + 1))
	echo "ok $n - an RPM by the spec has all that is installed # SKIP rpmbuild is not installed (Debian package rpm)"
fi
make -s uninstall DESTDIR="$tmp" "${dirs[@]}" > "$tmp/log" 2>&1
result 'make uninstall leaves nothing' test -z "$(find "$tmp" -type f ! -path "$tmp/log" ! -path "$tmp/here/*")"
