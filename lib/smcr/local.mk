# The engine; its rooms are lib/smcr/state, data, group and rendezvous.
noinst_LIBRARIES += lib/libsmcr.a
lib_libsmcr_a_SOURCES = \
	lib/smcr/proof.h lib/smcr/identity.h \
	lib/smcr/smcr.h \
	lib/smcr/engine.c lib/smcr/engine.h \
	lib/smcr/device.c lib/smcr/device.h \
	lib/smcr/info.c \
	lib/smcr/state/engine.h \
	lib/smcr/state/conn.c lib/smcr/state/conn.h lib/smcr/state/cursor.h \
	lib/smcr/state/lgr.c lib/smcr/state/lgr.h \
	lib/smcr/state/link.h \
	lib/smcr/state/log.c lib/smcr/state/log.h \
	lib/smcr/state/dialect.h \
	lib/smcr/state/marks.c lib/smcr/state/marks.h

check_UNIT += \
	tests/unit/lib/smcr/check_cursor \
	tests/unit/lib/smcr/check_marks \
	tests/unit/lib/smcr/state/check_log

include lib/smcr/data/local.mk
include lib/smcr/group/local.mk
include lib/smcr/rendezvous/local.mk
