#!/bin/bash
# The SELinux module is compiled as its README says, and labels what is installed.
src=$(cd "${top_srcdir:-.}/packaging/selinux" && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
PATH=$PATH:/usr/sbin
devel=/usr/share/selinux/devel/Makefile
# result NUMBER NAME COMMAND...: fails with what the command printed
result() {
	local n=$1 name=$2 out
	shift 2
	if out=$("$@" 2>&1); then
		echo "ok $n - $name"
	else
		echo "$out" | sed 's/^/# /'
		echo "not ok $n - $name"
	fi
}

compiles() {
	local out
	cp "$src"/smcrd.{te,fc,if} "$tmp" || return 1
	out=$(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$tmp" -f "$devel" smcrd.pp 2>&1) && [ -s "$tmp/smcrd.pp" ] || { echo "$out"; return 1; }
	! grep -i warning <<< "$out"
}

# The type that file contexts give a path; the last one counts.
type_of() {
	local regex rest found=none
	while read -r regex rest; do
		[[ $1 =~ ^$regex$ ]] && found=$(sed 's/.*object_r:\([a-z_]*\),.*/\1/' <<< "$rest")
	done < <(grep -v '^$' "$src/smcrd.fc")
	echo "$found"
}
labels() {
	local path want
	while read -r path want; do
		[ "$(type_of "$path")" = "$want" ] || { echo "$path: $(type_of "$path"), not $want"; return 1; }
	done <<- 'END'
		/usr/sbin/smcrd smcrd_exec_t
		/usr/bin/smcrctl none
		/etc/smcrd smcrd_conf_t
		/etc/smcrd/conf.d/web.conf smcrd_conf_t
		/run/smcrd smcrd_runtime_t
		/run/smcrd/control smcrd_runtime_t
		/run/smcrd-two/control smcrd_runtime_t
		/run/smcrdx none
		/usr/lib/systemd/system/smcrd.service smcrd_unit_t
		/usr/lib/systemd/system/smcrd@.service smcrd_unit_t
	END
}

echo 1..2
if [ -e "$devel" ]; then
	result 1 'the module is compiled' compiles
else
	echo 'ok 1 - the module is compiled # SKIP selinux-policy-dev is not installed'
fi
result 2 'it labels what is installed, and nothing else' labels
