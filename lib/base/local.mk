noinst_LTLIBRARIES += lib/libbase.la
lib_libbase_la_SOURCES = \
	lib/base/be.h lib/base/span.h \
	lib/base/list.h lib/base/minmax.h \
	lib/base/addr.c lib/base/addr.h \
	lib/base/vlan.c lib/base/vlan.h \
	lib/base/idtable.c lib/base/idtable.h \
	lib/base/timerq.c lib/base/timerq.h \
	lib/base/pages.c lib/base/pages.h \
	lib/base/rng.c lib/base/rng.h \
	lib/base/tally.c lib/base/tally.h \
	lib/base/log.c lib/base/log.h \
	lib/base/slab.c lib/base/slab.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_addr \
	tests/unit/check_span \
	tests/unit/check_idtable \
	tests/unit/check_timerq \
	tests/unit/check_pages \
	tests/unit/check_list \
	tests/unit/check_tally \
	tests/unit/check_log \
	tests/unit/check_slab
tests_unit_check_addr_SOURCES = tests/unit/check_addr.c tests/unit/unit.h
tests_unit_check_addr_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_addr_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_span_SOURCES = tests/unit/check_span.c tests/unit/unit.h
tests_unit_check_span_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_span_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_idtable_SOURCES = tests/unit/check_idtable.c tests/unit/unit.h
tests_unit_check_idtable_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_idtable_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_timerq_SOURCES = tests/unit/check_timerq.c tests/unit/unit.h
tests_unit_check_timerq_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_timerq_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_pages_SOURCES = tests/unit/check_pages.c tests/unit/unit.h
tests_unit_check_pages_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_pages_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_list_SOURCES = tests/unit/check_list.c tests/unit/unit.h
tests_unit_check_list_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_list_LDADD = $(UNIT_LIBS)
tests_unit_check_tally_SOURCES = tests/unit/check_tally.c tests/unit/unit.h
tests_unit_check_tally_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_tally_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_log_SOURCES = tests/unit/check_log.c tests/unit/unit.h
tests_unit_check_log_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_log_LDADD = lib/libbase.la $(UNIT_LIBS)
tests_unit_check_slab_SOURCES = tests/unit/check_slab.c tests/unit/unit.h
tests_unit_check_slab_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_slab_LDADD = lib/libbase.la $(UNIT_LIBS)
endif
