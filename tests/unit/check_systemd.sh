#!/bin/sh
# The unit and its snippets are what systemd's own tools take. Needs no running systemd and no root.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
src=$(cd "${top_srcdir:-.}/systemd" && pwd) || exit 1
skip() { echo "ok $1 - $2 # SKIP $3"; }
# result NUMBER NAME COMMAND...: fails with what the command printed
result() {
	n=$1 name=$2
	shift 2
	if out=$("$@" 2>&1); then
		echo "ok $n - $name"
	else
		echo "$out" | sed 's/^/# /'
		echo "not ok $n - $name"
	fi
}

# verify looks for the program, so a stand-in takes its place.
mkdir -p "$tmp/sbin" "$tmp/root/etc"
printf '#!/bin/sh\n' > "$tmp/sbin/smcrd"
chmod +x "$tmp/sbin/smcrd"
# Both units are built of one template.
for unit in smcrd.service smcrd@.service; do
	sed -e "s,^\(Exec[A-Za-z]*\)=/[^ ]*/smcrd,\1=$tmp/sbin/smcrd," -e 's,=/.*/smcrd/\([^/]*\.conf\)$,=/etc/smcrd/\1,' \
		"${top_builddir:-.}/systemd/$unit" > "$tmp/$unit"
done
cp "$src/smcrd.socket" "$src/smcrd-programs.slice" "$src/smcrd-programs.service" "$tmp"
# quiet_verify [UNIT]: smcrd.service, with another one. systemd-analyze complains about some mistakes and still succeeds: no
# output is what counts.
quiet_verify() {
	out=$(systemd-analyze verify --man=no "$tmp/smcrd.service" "$@" 2>&1) || out="$out (failed)"
	echo "$out"
	[ -z "$out" ]
}

echo 1..13
if command -v systemd-analyze >/dev/null; then
	result 1 'smcrd.service' quiet_verify
else
	skip 1 'smcrd.service' 'systemd-analyze is not installed'
fi
if command -v systemd-sysusers >/dev/null; then
	result 2 'sysusers.conf' systemd-sysusers --root="$tmp/root" --dry-run "$src/sysusers.conf"
else
	skip 2 'sysusers.conf' 'systemd-sysusers is not installed'
fi
if ! command -v systemd-tmpfiles >/dev/null; then
	skip 3 'tmpfiles.conf' 'systemd-tmpfiles is not installed'
else
	# Any user may not make files of another one: its own name instead.
	sed "s/ smcrd smcrd / $(id -u) $(id -g) /" "$src/tmpfiles.conf" > "$tmp/smcrd.conf"
	result 3 'tmpfiles.conf' systemd-tmpfiles --root="$tmp/root" --create "$tmp/smcrd.conf"
fi

# Cards are device files, and keep memory locked: hardening must not take either away.
lets_cards_through() {
	for line in DevicePolicy=closed 'DeviceAllow=char-infiniband_verbs rw' 'DeviceAllow=/dev/infiniband/rdma_cm rw' \
		LimitMEMLOCK=infinity; do
		grep -qx "$line" "$tmp/smcrd.service" || echo "no $line"
	done
	! grep -q '^PrivateDevices=yes' "$tmp/smcrd.service" || echo 'PrivateDevices= hides /dev/infiniband'
}
lacks=$(lets_cards_through)
result 4 'smcrd.service lets RDMA cards through' test -z "$lacks"
[ -z "$lacks" ] || echo "$lacks" | sed 's/^/# /'

# Limits on an attacker that can crash the daemon.
hardened() {
	for line in LimitCORE=0 ProcSubset=pid NoNewPrivileges=yes MemoryDenyWriteExecute=yes; do
		grep -qx "$line" "$tmp/smcrd.service" || echo "no $line"
	done
	burst=$(sed -n 's/^StartLimitBurst=//p' "$tmp/smcrd.service")
	[ "${burst:-0}" -gt 0 ] || echo 'no StartLimitBurst='
	! grep -qE '^StartLimitIntervalSec=(0|infinity)$' "$tmp/smcrd.service" || echo 'restarts without end'
}
lacks=$(hardened)
result 5 'no core dumps, restarts with a limit' test -z "$lacks"
[ -z "$lacks" ] || echo "$lacks" | sed 's/^/# /'

# The unit has to let through what the daemon allows itself, and the calls by which it confines itself: otherwise the
# daemon would say that it is confined less under systemd than without. And fchownat, for listen_group.
# unit_refuses FILE...: calls of the table that the unit with these files refuses.
unit_refuses() {
	{
		systemd-analyze syscall-filter 2>/dev/null
		echo '== unit'
		cat "$@" | sed -n 's/^SystemCallFilter=//p'
		echo '== wanted'
		sed -nE '/SMCRD_SANITIZERS/,/#endif/d; s/^\t(\{ (\.names = )?| +)"([a-z0-9_ ]*)".*/\3/p' \
			"$src/../daemon/confine/confine_table.c" | tr ' ' '\n'
		printf '%s\n' capset prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self fchownat
	} | awk '
		function expand(name, on,    n, i, parts) {
			if (name !~ /^@/) { may[name] = on; return }
			n = split(members[name], parts, " ")
			for (i = 1; i <= n; i++) expand(parts[i], on)
		}
		/^== / { section = $2; next }
		section == "" && /^@/ { group = $1; next }
		section == "" && $1 ~ /^[@a-z_]/ { members[group] = members[group] " " $1; next }
		section == "unit" {
			on = 1
			if (sub(/^~/, "")) on = 0
			for (i = 1; i <= NF; i++) expand($i, on)
		}
		section == "wanted" {
			if (index(members["@known"] " ", " " $1 " ") && !may[$1]) print $1
		}'
}
if command -v systemd-analyze >/dev/null && systemd-analyze syscall-filter >/dev/null 2>&1; then
	# But for that of the TCP option, which the drop-in for it lets through, below.
	lacks=$(unit_refuses "$tmp/smcrd.service" | sort -u | grep -vx bpf)
	result 6 'smcrd.service lets the daemon confine itself' test -z "$lacks"
	[ -z "$lacks" ] || echo "$lacks" | sed 's/^/# refused by the unit: /'
else
	skip 6 'smcrd.service lets the daemon confine itself' 'systemd-analyze is not installed'
fi

# The drop-ins of the manual page, too.
drop=$tmp/smcrd.service.d/drop.conf
# drop_in NUMBER WORD: that one takes effect alone, and has the word.
drop_in() {
	mkdir -p "$tmp/smcrd.service.d"
	awk -v want="$1" '/^\[Service\]$/ { n++; on = 1 } /^\.Ed$/ { on = 0 } on && n == want' "$src/../man/smcrd.8" > "$drop"
	grep -q "$2" "$drop" && quiet_verify
}
option_drop_in() {
	drop_in 2 CAP_BPF || return
	for line in 'AmbientCapabilities=CAP_BPF CAP_NET_ADMIN' 'CapabilityBoundingSet=CAP_BPF CAP_NET_ADMIN'; do
		grep -qx "$line" "$drop" || { echo "no $line"; return 1; }
	done
	lacks=$(unit_refuses "$tmp/smcrd.service" "$drop" | sort -u)
	[ -z "$lacks" ] || { echo "refused: $lacks"; return 1; }
	# Without it the unit gives neither.
	! grep -qE 'CAP_BPF|CAP_NET_ADMIN|[= ]bpf' "$tmp/smcrd.service" || { echo 'the unit has the rights by itself'; return 1; }
}
connect_drop_in() {
	drop_in 3 CAP_NET_RAW || return
	for line in 'AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW' 'CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_NET_RAW'; do
		grep -qx "$line" "$drop" || { echo "no $line"; return 1; }
	done
	! grep -q CAP_NET_RAW "$tmp/smcrd.service" || { echo 'the unit has the right by itself'; return 1; }
}
more_rights() {
	option_drop_in && connect_drop_in
}
if command -v systemd-analyze >/dev/null; then
	result 7 'the drop-in of smcrd(8) that narrows' drop_in 1 IPAddressAllow
	result 8 'the drop-ins of smcrd(8) for the TCP option and for addresses of clients' more_rights
	result 9 'smcrd.socket, the example' quiet_verify "$tmp/smcrd.socket"
else
	skip 7 'the drop-in of smcrd(8) that narrows' 'systemd-analyze is not installed'
	skip 8 'the drop-ins of smcrd(8) for the TCP option and for addresses of clients' 'systemd-analyze is not installed'
	skip 9 'smcrd.socket, the example' 'systemd-analyze is not installed'
fi

# Each entry of the catalog is one that journalctl finds.
catalog_is_taken() {
	mkdir -p "$tmp/j/usr/lib/systemd/catalog" "$tmp/j/var/lib/systemd/catalog"
	cp "$src/smcrd.catalog" "$tmp/j/usr/lib/systemd/catalog"
	journalctl --root="$tmp/j" --update-catalog || return 1
	journalctl --root="$tmp/j" --list-catalog | cut -d' ' -f1 | sort > "$tmp/listed"
	sed -n 's/^-- //p' "$src/smcrd.catalog" | sort > "$tmp/written"
	[ -s "$tmp/written" ] && diff "$tmp/listed" "$tmp/written"
}
if command -v journalctl >/dev/null; then
	result 10 'smcrd.catalog' catalog_is_taken
else
	skip 10 'smcrd.catalog' 'journalctl is not installed'
fi

# An instance is as the first daemon, at other paths: neither may remove what the other one has.
instance_differs() {
	diff "$tmp/smcrd.service" "$tmp/smcrd@.service" | sed -n 's/^> //p' | cut -d = -f 1 > "$tmp/differs"
	printf '%s\n' Description ConditionPathExists ExecStart ExecReload RuntimeDirectory | diff - "$tmp/differs" || return 1
	! grep -n '@[a-z]*@' "$tmp/smcrd.service" "$tmp/smcrd@.service" || return 1
	for line in ConditionPathExists=/etc/smcrd/%i.conf RuntimeDirectory=smcrd-%i "ExecReload=$tmp/sbin/smcrd -i %i --unit --reload"; do
		grep -qx -- "$line" "$tmp/smcrd@.service" || { echo "no $line"; return 1; }
	done
	! command -v systemd-analyze >/dev/null || {
		cp "$tmp/smcrd@.service" "$tmp/smcrd@db-1.service" && quiet_verify "$tmp/smcrd@db-1.service"
	}
}
result 11 'smcrd@.service' instance_differs

# After an upgrade each daemon that runs is reloaded, by a systemctl and a deb-systemd-invoke of the test's own. One refuses.
upgrade_reloads_all() {
	mkdir -p "$tmp/bin" "$tmp/system"
	printf '#!/bin/sh\n[ "$1" = list-units ] && cat "%s/running"\n' "$tmp" > "$tmp/bin/systemctl"
	printf '#!/bin/sh\necho "$*" >> "%s/done"\n[ "$2" != smcrd@two.service ]\n' "$tmp" > "$tmp/bin/deb-systemd-invoke"
	chmod +x "$tmp/bin/systemctl" "$tmp/bin/deb-systemd-invoke"
	printf '%s loaded active running Gateway\n' smcrd.service smcrd@two.service 'smcrd@a\x2db.service' > "$tmp/running"
	sed "s,/run/systemd/system,$tmp/system," "$src/../debian/smcrd.postinst" > "$tmp/postinst"
	PATH=$tmp/bin:$PATH sh "$tmp/postinst" configure 0.0.9 2> "$tmp/said" || return 1
	printf 'reload %s\n' smcrd.service smcrd@two.service 'smcrd@a\x2db.service' | diff - "$tmp/done" &&
		grep -q 'smcrd@two.service: .*the old one goes on' "$tmp/said" || return 1
	# A first installation reloads none.
	rm "$tmp/done"
	PATH=$tmp/bin:$PATH sh "$tmp/postinst" configure && [ ! -e "$tmp/done" ]
}
result 12 'an upgrade of the package reloads each running daemon, instances as well' upgrade_reloads_all
if command -v systemd-analyze >/dev/null; then
	result 13 'smcrd-programs.service and its slice' quiet_verify "$tmp/smcrd-programs.service" "$tmp/smcrd-programs.slice"
else
	skip 13 'smcrd-programs.service and its slice' 'systemd-analyze is not installed'
fi
