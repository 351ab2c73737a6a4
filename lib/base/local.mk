noinst_LIBRARIES += lib/libbase.a
lib_libbase_a_SOURCES = \
	lib/base/clock.h lib/base/span.h \
	lib/base/list.h lib/base/hash.h lib/base/minmax.h lib/base/ring.h \
	lib/base/addr.c lib/base/addr.h \
	lib/base/idtable.c lib/base/idtable.h \
	lib/base/timerq.c lib/base/timerq.h \
	lib/base/pages.c lib/base/pages.h \
	lib/base/rng.c lib/base/rng.h \
	lib/base/tally.c lib/base/tally.h \
	lib/base/histogram.c lib/base/histogram.h \
	lib/base/log.c lib/base/log.h \
	lib/base/log_writer.c lib/base/log_writer.h \
	lib/base/log_json.c lib/base/log_json.h \
	lib/base/str.c lib/base/str.h \
	lib/base/slab.c lib/base/slab.h \
	lib/base/typo.c lib/base/typo.h

check_UNIT += \
	tests/unit/lib/base/check_addr \
	tests/unit/lib/base/check_span \
	tests/unit/lib/base/check_idtable \
	tests/unit/lib/base/check_timerq \
	tests/unit/lib/base/check_pages \
	tests/unit/lib/base/check_list \
	tests/unit/lib/base/check_tally \
	tests/unit/lib/base/check_histogram \
	tests/unit/lib/base/check_log \
	tests/unit/lib/base/check_log_writer \
	tests/unit/lib/base/check_log_json \
	tests/unit/lib/base/check_str \
	tests/unit/lib/base/check_slab \
	tests/unit/lib/base/check_typo
