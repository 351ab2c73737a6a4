#!/bin/sh
# Who may include whom (doc/architecture.md): one test per folder, as TAP.
cd "${top_srcdir:-.}" || exit 1

n=0
# folder, then the folders and files that it may include with "..."
check() {
	dir=$1
	shift
	n=$((n + 1))
	[ -d "$dir" ] || { echo "ok $n - $dir # SKIP not there"; return; }
	allowed=$(printf '%s\n' "$@" | paste -sd'|')
	bad=$(grep -Hn '^#include "' "$dir"/*.[ch] | grep -Ev "#include \"($allowed)" | grep -v '#include "config.h"')
	if [ -n "$bad" ]; then
		echo "not ok $n - $dir includes only what it may"
		echo "$bad" | sed 's/^/# /'
	else
		echo "ok $n - $dir includes only what it may"
	fi
}

echo "1..8"
check lib/base base/
check lib/wire base/ wire/
check lib/smcr base/ wire/ smcr/ rnic/rnic.h
check lib/iwarp base/ wire/ iwarp/
check lib/rnic base/ wire/ iwarp/ rnic/
check ctl base/ ctl/

n=$((n + 1))
if grep -ln 'event2/\|<event\.h>' lib/*/*.[ch] daemon/*.[ch] ctl/*.[ch] 2>/dev/null | grep -v '^daemon/loop.c$'; then
	echo "not ok $n - only daemon/loop.c knows libevent"
else
	echo "ok $n - only daemon/loop.c knows libevent"
fi

# The protocol code does no I/O, reads no clock, writes no log.
n=$((n + 1))
bad=$(grep -nE '\b(clock_gettime|gettimeofday|time\(NULL\)|socket\(|send\(|recv\(|sendmsg\(|recvmsg\(|printf\(stderr|log_msg\()' \
	lib/wire/*.[ch] lib/smcr/*.[ch] lib/iwarp/*.[ch] 2>/dev/null | grep -v ' \* ')
if [ -n "$bad" ]; then
	echo "not ok $n - protocol code does no I/O and reads no clock"
	echo "$bad" | sed 's/^/# /'
else
	echo "ok $n - protocol code does no I/O and reads no clock"
fi
