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
sed -e "s,@sbindir@,$tmp/sbin,g" -e 's,@sysconfdir@,/etc,g' "$src/smcrd.service.in" > "$tmp/smcrd.service"
# It complains about some mistakes and still succeeds: no output is what counts.
quiet_verify() {
	out=$(systemd-analyze verify --man=no "$tmp/smcrd.service" 2>&1) || out="$out (failed)"
	echo "$out"
	[ -z "$out" ]
}

echo 1..4
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
