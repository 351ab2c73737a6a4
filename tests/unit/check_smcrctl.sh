#!/bin/bash
# smcrctl as people and scripts use it: output, errors, exit status. A fake smcrd answers.
set -u
builddir=${top_builddir:-.}
ctl=$builddir/smcrctl
dir=$(mktemp -d /tmp/check_smcrctl.XXXXXX) || exit 1
sock=$dir/control
daemon=
export TZ=UTC LC_ALL=C
n=0

cleanup() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

# wait_for COMMAND...: until it succeeds, 10 s at most
wait_for() {
	for _ in $(seq 500); do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}

start() {
	"$builddir/tests/unit/fake_smcrd" "$sock" "$sock.ro" 2>"$dir/daemon.err" &
	daemon=$!
	wait_for test -S "$sock" && wait_for test -S "$sock.ro"
}

# begin ARGUMENT...: runs smcrctl in the background. What the one before has written is gone when it begins, not at some time.
begin() {
	: >"$dir/out" 2>"$dir/err"
	"$ctl" --socket "$sock" "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
}

# run STATUS ARGUMENT...: runs smcrctl, output in $dir/out and $dir/err
run() {
	local want=$1
	shift
	timeout 120 "$ctl" --socket "$sock" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ "$status" -eq "$want" ]
}

# result NAME STATUS
result() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# out: /' "$dir/out" | head -20
		sed 's/^/# err: /' "$dir/err" | head -20
	fi
}

: >"$dir/out"
: >"$dir/err"

run 2 status && grep -q 'smcrd does not run' "$dir/err" && grep -q -- '--socket' "$dir/err" && [ ! -s "$dir/out" ]
result "no daemon: said how to start it" $?

run 2 status --json && grep -q '^{"schema":1,"command":"status",.*"error":{"code":"no-daemon","text":".*"},"data":null}$' "$dir/out" &&
	grep -q 'smcrd does not run' "$dir/err" && run 2 stats --delta --json && grep -q '"code":"no-daemon"' "$dir/out"
result "no daemon: an answer with --json as well" $?

run 2 doctor && grep -q '^problem  daemon    smcrd does not run.*: no daemon at '"$sock"'\. To do: start it' "$dir/out" &&
	[ ! -s "$dir/err" ] && run 2 doctor --json --problems &&
	grep -q '^{"schema":1,"command":"doctor",.*"verdict":"problem"' "$dir/out"
result "doctor without a daemon is a problem, also as JSON" $?

# The unit and the journal are asked for the default socket alone.
default=$("$ctl" --help | sed -n 's/^ *(\(\/.*control\))$/\1/p')
if [ ! -e "$default" ]; then
	mkdir "$dir/bin"
	cat >"$dir/bin/systemctl" <<-'EOS'
		#!/bin/sh
		printf '%s\n' LoadState=loaded ActiveState=failed SubState=failed Result=exit-code ExecMainStatus=1 "$*" >&2
		printf '%s\n' LoadState=loaded ActiveState=failed SubState=failed Result=exit-code ExecMainStatus=1
	EOS
	printf '#!/bin/sh\necho first\necho "cannot listen on 127.0.0.1:80: x=y"\necho "smcrd 1.2 failed at its start, exit status 1"\n' >\
		"$dir/bin/journalctl"
	chmod +x "$dir/bin/systemctl" "$dir/bin/journalctl"
	PATH=$dir/bin:$PATH "$ctl" doctor >"$dir/out" 2>"$dir/err"
	[ $? -eq 2 ] && [ ! -s "$dir/err" ] && grep -q 'smcrd.service ended with exit-code, exit status 1; its last error: cannot listen on 127.0.0.1:80: x=y\.' "$dir/out"
	result "doctor says why the unit does not run" $?
else
	n=$((n + 1))
	echo "ok $n - doctor says why the unit does not run # SKIP a daemon is at $default"
fi

run 2 dance && grep -q 'unknown command: dance' "$dir/err" && grep -q -- --help "$dir/err"
result "wrong usage" $?

run 0 --help && grep -q '^Usage' "$dir/out" && run 0 --version && grep -q '^smcrctl [0-9]' "$dir/out"
result "help and version need no daemon" $?

start
result "the fake daemon listens" $?

ok=0
for c in status connections groups links rmbs devices stats; do
	run 0 "$c" && [ -s "$dir/out" ] && [ ! -s "$dir/err" ] || ok=1
done
result "every look prints something and ends well" $ok

run 0 connections --tcp && [ "$(wc -l <"$dir/out")" -eq 3 ] && ! grep -q 'SMC-R' "$dir/out" &&
	grep -q '0x05000000/0x03030000 peer declined; peer: no RDMA device' "$dir/out"
result "a filter, and a reason in words" $?

ok=0
for f in 'connections --service nope' 'connections --group 77' 'links --group 77' 'rmbs --group 77 --json'; do
	run 1 $f && grep -q "nothing matches: there are no such ${f%% *}\$" "$dir/err" || ok=1
done
result "a filter that matches nothing says so, and is 1" $ok

run 0 service web && grep -q '^ingress web$' "$dir/out" && grep -q '^  max_connections = 1000$' "$dir/out" &&
	run 1 service nope && grep -q 'there is no such service' "$dir/err"
result "one service, and one that is not there" $?

run 2 link && grep -q 'only the beginning of a command (see --help): link$' "$dir/err"
result "half a command" $?

run 0 --json groups && [ "$(wc -l <"$dir/out")" -eq 1 ] && grep -q '^{"schema":1,"command":"groups",.*}$' "$dir/out"
result "JSON is one line, as the daemon wrote it" $?

run 0 check 127.0.0.1:1 && grep -q '^yes: SMC-R works$' "$dir/out" &&
	run 0 --json check '[::1]:1' && grep -q '"peer":"\[::1\]:1"' "$dir/out"
result "check: possible is 0" $?

run 1 check 127.0.0.1:2 && grep -q '^no: declined: no RDMA device' "$dir/out" && run 1 check 127.0.0.1:2 --json
result "check: not possible is 1" $?

run 2 check no-such-host.invalid:80 && grep -q 'no address for no-such-host.invalid' "$dir/err"
result "check: a name without address is 2" $?

# Of the fake's devices and services some are ill.
run 2 doctor && grep -q '^problem  check     web: ' "$dir/out" && ! grep -q 'no peer was checked' "$dir/out" &&
	run 1 doctor --socket "$sock.ro" && [ ! -s "$dir/err" ] &&
	grep -q '^warning  check     no peer was checked: .*To do: ask on the control socket' "$dir/out" &&
	! grep -q '^ok       check' "$dir/out"
status=$?
[ $status -eq 0 ] && run 2 doctor --problems && grep -q '^problem  check     web: ' "$dir/out" && ! grep -qE '^(ok|note) ' "$dir/out" &&
	run 2 status --problems && grep -q -- '--problems is for doctor' "$dir/err"
result "doctor checks peers, and says that it cannot on the read-only socket" $?

run 0 reload && grep -q reloaded "$dir/out" && run 1 reload && grep -q 'smcrd.conf:3: wrong' "$dir/err" &&
	grep -q 'old one stays' "$dir/err" && [ ! -s "$dir/out" ]
result "reload: well is 0, refused is 1 with the reason" $?

begin trace --llc
wait_for grep -q ' > 1/1 LLC TEST LINK' "$dir/out"
status=$?
kill "$pid"
wait "$pid" 2>/dev/null
result "trace prints as it comes" $status

"$ctl" --socket "$sock" trace --json --group 1 | head -n 4 >"$dir/out" 2>"$dir/err"
[ "$(grep -c '"event":"message"' "$dir/out")" -eq 4 ]
result "trace as JSON, into a reader that goes" $?

run 1 trace --group 99 && grep -q 'there is no such link group$' "$dir/err" && [ ! -s "$dir/out" ] &&
	run 1 trace --token 0x99 && grep -q 'there is no such connection$' "$dir/err" &&
	run 1 --json trace --group 99 && grep -q '"code":"not-found"' "$dir/out"
result "trace of a group or a connection that is not there says so, and is 1" $?

run 0 events && grep -q 'warning: link down: service=web group=3 link=1 reason="port down"' "$dir/out" &&
	[ "$(wc -l <"$dir/out")" -eq 2 ] && run 0 events --json --kind link-up && [ "$(wc -l <"$dir/out")" -eq 1 ] &&
	run 1 events --service nope && grep -q 'nothing matches' "$dir/err" &&
	run 2 events --kind weather && grep -q 'must be one of peer-unreachable ' "$dir/err"
result "events prints those that are kept; filters that match nothing say so" $?

begin events -f --group 3
wait_for grep -q 'link up: group=3 link=2' "$dir/out" && kill -0 "$pid"
status=$?
kill "$pid"
wait "$pid" 2>/dev/null
result "events --follow goes on" $status

begin --watch=0.1 status
wait_for eval '[ "$(grep -c "^smcrd " "$dir/out")" -ge 3 ]'
status=$?
kill "$pid"
wait "$pid" 2>/dev/null
result "watch shows again and again" $status

begin top --watch=0.1
wait_for eval '[ "$(grep -c "^smcrd " "$dir/out")" -ge 3 ]'
status=$?
kill "$pid"
wait "$pid" 2>/dev/null
[ $status -eq 0 ] && grep -q '/s' "$dir/out" && ! grep -q "$(printf '\033')" "$dir/out"
result "top goes on, in a pipe without escapes" $?

run 1 top --service nope && grep -q '^smcrctl: nothing matches: there is no such service$' "$dir/err" && [ ! -s "$dir/out" ]
result "top of a service that is not there says so, and is 1" $?

run 0 stats --delta --json && grep -q '"interval_ms":' "$dir/out" && [ "$(wc -l <"$dir/out")" -eq 1 ]
result "differences once" $?

run 0 close --service web && grep -q 'connections closed: 3' "$dir/out" && run 1 close --service none &&
	grep -q 'there are no such connections' "$dir/err" && run 1 disable none && run 0 disable web && run 0 enable web
result "orders: 0 if well, 1 if there is nothing to it" $?

run 0 retry && grep -q 'missing devices that are looked for now: 4$' "$dir/out" &&
	grep -q 'names that are looked up now: 6$' "$dir/out" && [ ! -s "$dir/err" ] &&
	run 1 retry 192.0.2.9:9 && grep -q '^smcrctl: nothing to retry: nothing with this peer waits for another try$' "$dir/err" &&
	run 1 --json retry 192.0.2.9:9 && grep -q '"peers":0' "$dir/out"
result "retry: 0 if anything waited, 1 if nothing did" $?

"$ctl" --socket "$sock" status >/dev/full 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'cannot write' "$dir/err"
result "output that cannot be written is an error" $?

kill -STOP "$daemon"
begin --watch=0.1 links
kill -CONT "$daemon"
wait_for test -s "$dir/out"
kill "$daemon"
wait "$daemon"
daemon=
wait_for grep -q 'does not run' "$dir/err" && start && : >"$dir/out" && wait_for grep -q siw0 "$dir/out"
status=$?
kill "$pid"
wait "$pid" 2>/dev/null
result "watch waits over a restart of the daemon" $status

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$dir"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$ctl" --socket "$sock" status >"$dir/out" 2>"$dir/err"
	[ $? -eq 2 ] && grep -q 'permission denied' "$dir/err" && grep -q 'control.mode' "$dir/err"
	result "no permission: said what to do" $?
else
	n=$((n + 1))
	echo "ok $n - no permission: said what to do # SKIP needs root and setpriv"
fi

run 0 drain --then-exit --watch=0.1 && grep -q 'connections left 5' "$dir/out" && grep -q '^drained: smcrd has ended' "$dir/out"
result "drain is watched until the daemon has ended" $?
wait "$daemon"
status=$?
daemon=
[ ! -e "$sock" ] && [ "$status" -eq 0 ]
result "the socket is gone with it" $?

# A daemon that says nonsense, or nothing.
if command -v socat >/dev/null; then
	socat UNIX-LISTEN:"$sock" SYSTEM:'read x; echo nonsense' &
	pid=$!
	wait_for test -S "$sock" && run 2 status && grep -q 'cannot understand' "$dir/err"
	result "nonsense for an answer" $?
	wait "$pid" 2>/dev/null
	rm -f "$sock"
	socat UNIX-LISTEN:"$sock" SYSTEM:'read x' &
	pid=$!
	wait_for test -S "$sock" && run 2 status && grep -q 'closed the connection' "$dir/err"
	result "no answer at all" $?
	wait "$pid" 2>/dev/null
else
	for what in "nonsense for an answer" "no answer at all"; do
		n=$((n + 1))
		echo "ok $n - $what # SKIP needs socat"
	done
fi

echo "1..$n"
