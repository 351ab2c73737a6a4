#!/bin/sh
# Who may include whom (doc/architecture.md): one test per folder, as TAP.
cd "${top_srcdir:-.}" || exit 1

n=0
result() {
	n=$((n + 1))
	if [ -n "$1" ]; then
		echo "$1" | sed 's/^/# /'
		echo "not ok $n - $2"
	else
		echo "ok $n - $2"
	fi
}

# folder, then the folders and files that it may include with "..."
check() {
	dir=$1
	shift
	allowed=$(printf '%s\n' config.h "$@" | paste -sd'|')
	bad=$(grep -H '^#include "' "$dir"/*.[ch] | sed 's/:#include "/ /; s/".*//' | grep -Ev " ($allowed)")
	[ -d "$dir" ] || bad="it is not there"
	result "$bad" "$dir includes only what it may"
}

echo "1..29"
check lib/base base/
check lib/wire base/ wire/
check lib/control control/
check lib/iwarp base/ wire/ iwarp/

# What devices share; devices do not see each other.
rnic='base/ wire/ rnic/[a-z_]*\.h'
check lib/rnic $rnic
# Soft iWARP: what is below DDP sees the device, which does not know which it is.
siw="$rnic iwarp/ rnic/siw/[a-z_]*\.h"
check lib/rnic/siw $siw
check lib/rnic/siw/tcp $siw rnic/siw/tcp/
check lib/rnic/siw/sctp $siw rnic/siw/sctp/
check lib/rnic/verbs $rnic rnic/verbs/
check tests/sim base/ wire/ rnic/rnic.h tests/sim/

# The engine's rooms. smcr.h is what users see; state has the objects that the rooms share, and the marks by which a lower room
# tells a higher one.
smcr='base/ wire/ rnic/rnic.h smcr/smcr.h smcr/state/'
check lib/smcr/state $smcr
check lib/smcr/data $smcr smcr/data/
check lib/smcr/group $smcr smcr/data/ smcr/group/
check lib/smcr/rendezvous $smcr smcr/data/ smcr/group/ smcr/rendezvous/
check lib/smcr $smcr smcr/

# The daemon's. What is in daemon/ itself is below all rooms (loop, sockets, words) or puts them together.
below='base/ wire/ smcr/smcr.h rnic/ daemon/loop.h daemon/mailbox.h daemon/env.h daemon/net.h daemon/ports.h daemon/lsock.h daemon/smcopt.h daemon/log_text.h daemon/event/'
check daemon/event base/ daemon/mailbox.h daemon/loop.h daemon/event/
check daemon/config $below daemon/config/
check daemon/confine $below daemon/config/config.h daemon/confine/
check daemon/device $below daemon/config/ daemon/device/
check daemon/session $below daemon/config/ daemon/device/ daemon/session/
check daemon/names $below daemon/config/ daemon/session/endpoints.h daemon/session/targets.h daemon/names/
check daemon/worker $below daemon/config/ daemon/device/ daemon/session/ daemon/worker/
check daemon/control $below control/ daemon/handover.h daemon/config/ daemon/confine/ daemon/device/ daemon/session/ daemon/worker/ daemon/control/
check daemon/metrics $below control/ daemon/config/ daemon/confine/confine.h daemon/session/ daemon/worker/ daemon/control/ daemon/metrics/
check daemon base/ wire/ control/ smcr/smcr.h rnic/ daemon/
check ctl base/ control/ ctl/

result "$(find lib daemon ctl -name '*.[ch]' | xargs grep -l 'event2/\|<event\.h>' | grep -v '^daemon/loop.c$\|^daemon/metrics/http.c$')" \
	"only daemon/loop.c and daemon/metrics/http.c know libevent"
result "$(find lib daemon ctl -name '*.[ch]' | xargs grep -l '<ares' | grep -v '^daemon/names/resolver.c$')" \
	"only daemon/names/resolver.c knows c-ares"

# The protocol code does no I/O, reads no clock, writes no log.
result "$(find lib/wire lib/smcr lib/iwarp -name '*.[ch]' | xargs grep -nE \
	'\b(clock_gettime|gettimeofday|time\(NULL\)|socket\(|send\(|recv\(|sendmsg\(|recvmsg\(|printf\(stderr|log_msg\()' |
	grep -v ' \* ')" "protocol code does no I/O and reads no clock"
