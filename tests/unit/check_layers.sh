#!/bin/bash
# Permitted includes (doc/architecture.md): one test per folder, as TAP.
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

echo "1..50"
check lib/base base/
check lib/wire base/ wire/
check lib/control control/
check lib/tls base/ tls/
check lib/iwarp base/ wire/ iwarp/

# What devices share; devices do not see each other.
rnic='base/ wire/ rnic/[a-z_]*\.h'
check lib/rnic $rnic
# Soft iWARP: what is below DDP sees the device, which does not know which it is.
siw="$rnic iwarp/ rnic/siw/[a-z_]*\.h"
check lib/rnic/siw $siw tls/tls.h
check lib/rnic/siw/tcp $siw rnic/siw/tcp/ tls/tls.h
check lib/rnic/siw/sctp $siw rnic/siw/sctp/
check lib/rnic/verbs $rnic rnic/verbs/
check tests/sim base/ wire/ rnic/rnic.h rnic/unit.h tests/sim/ tests/seeded_rng.h

# The engine's rooms. smcr.h and proof.h are what users see; state has the objects that the rooms share, and the marks by which a lower room
# tells a higher one.
smcr='base/ wire/ rnic/rnic.h rnic/unit.h smcr/smcr.h smcr/proof.h smcr/state/'
check lib/smcr/state $smcr
check lib/smcr/data $smcr smcr/data/
check lib/smcr/group $smcr smcr/data/ smcr/group/
check lib/smcr/rendezvous $smcr smcr/data/ smcr/group/ smcr/rendezvous/
check lib/smcr $smcr smcr/

# The daemon's rooms, the lowest first, as in doc/architecture.md: each may include itself and what is before it. ROOM.h: its headers
# alone, as the objects of state are made of their structs; the sources of such a room are above state.
rooms='loop config confine net event log device leg.h account.h target.h probe.h state leg account target probe session service
	names worker control handover metrics process'
for room in $rooms; do
	below="$below daemon/${room%.h}/"
	case $room in *.h) files=daemon/${room%.h}/*.h ;; *) files=daemon/$room/*.[ch] ;; esac
	bad=$(grep -H '^#include "' $files |
		sed 's/:#include "/ /; s/".*//' | grep -Ev " ($(printf '%s\n' config.h base/ wire/ control/ smcr/smcr.h smcr/proof.h rnic/ tls/tls.h $below | paste -sd'|'))")
	[ -d "daemon/${room%.h}" ] || bad="it is not there"
	case $room in
	*.h) result "$bad" "the headers of daemon/${room%.h} are below daemon/state" ;;
	*) result "$bad" "daemon/$room includes only what is below" ;;
	esac
done
result "$(ls -d daemon/*/ | sed 's|daemon/\(.*\)/|\1|' | grep -vxF "$(printf '%s\n' $rooms)")" "each folder of daemon has its level"
result "$(grep -o '^| daemon/[a-z]* ' doc/architecture.md | tr -d '| ' | diff - <(printf 'daemon/%s\n' $rooms | grep -v '\.h$'))" \
	"doc/architecture.md has the rooms in this order"
check daemon base/ wire/ control/ smcr/smcr.h smcr/proof.h rnic/ daemon/
check ctl base/ control/ ctl/
check local -

result "$(find lib daemon ctl -name '*.[ch]' | xargs grep -l 'event2/\|<event\.h>' | grep -v '^daemon/metrics/http.c$')" \
	"only daemon/metrics/http.c knows libevent"
result "$(find lib daemon ctl -name '*.[ch]' | xargs grep -l '<ares' | grep -v '^daemon/names/resolver.c$')" \
	"only daemon/names/resolver.c knows c-ares"
result "$(find lib daemon ctl -name '*.[ch]' | xargs grep -l '<openssl/' | grep -v '^lib/tls/')" "only lib/tls knows OpenSSL"
result "$(grep -nE '\b(malloc|calloc|realloc)\(.*(key|psk)|SSLKEYLOG|keylog' lib/tls/*.c)" "no key is in plain memory or written"

# The protocol code does no I/O, reads no clock, writes no log.
result "$(find lib/wire lib/smcr lib/iwarp -name '*.[ch]' | xargs grep -nE \
	'\b(clock_gettime|gettimeofday|time\(NULL\)|socket\(|send\(|recv\(|sendmsg\(|recvmsg\(|printf\(stderr|log_msg\()' |
	grep -v ' \* ')" "protocol code does no I/O and reads no clock"
