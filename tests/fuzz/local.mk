# To add a target: tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput(), seeds in tests/fuzz/corpus/fuzz_NAME/
# (at least one file), one line in FUZZ_TARGETS and three like those at the end of this file.
# Normal builds run the corpus and mutations of it in "make check". For real fuzzing:
#	configure CC=clang --enable-fuzzing && make
#	tests/fuzz/fuzz_NAME /tmp/new ../tests/fuzz/corpus/fuzz_NAME
# A fixed crash's input becomes a file of the corpus.
FUZZ_TARGETS = \
	tests/fuzz/fuzz_clc \
	tests/fuzz/fuzz_llc \
	tests/fuzz/fuzz_cdc \
	tests/fuzz/fuzz_tcpopt \
	tests/fuzz/fuzz_control \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_mpa \
	tests/fuzz/fuzz_stream \
	tests/fuzz/fuzz_engine \
	tests/fuzz/fuzz_siw

if FUZZING
noinst_PROGRAMS += $(FUZZ_TARGETS)
FUZZ_MAIN = tests/fuzz/fuzz.h
FUZZ_STEPS = tests/fuzz/steps.c tests/fuzz/steps.h tests/fuzz/steps_mutate.c
else
check_UNIT += $(FUZZ_TARGETS)
FUZZ_MAIN = tests/fuzz/fuzz.h tests/fuzz/replay.c
FUZZ_STEPS = tests/fuzz/steps.c tests/fuzz/steps.h
endif
# Sockets in memory (sockets.h).
SOCKETS_WRAP = \
	-Wl,--wrap=socket -Wl,--wrap=bind -Wl,--wrap=listen -Wl,--wrap=connect -Wl,--wrap=accept4 \
	-Wl,--wrap=getpeername -Wl,--wrap=getsockname -Wl,--wrap=getsockopt -Wl,--wrap=setsockopt \
	-Wl,--wrap=send -Wl,--wrap=recv -Wl,--wrap=sendmsg -Wl,--wrap=recvmsg -Wl,--wrap=shutdown \
	-Wl,--wrap=close -Wl,--wrap=getifaddrs
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/coverage tests/fuzz/README.md

tests_fuzz_fuzz_clc_SOURCES = tests/fuzz/fuzz_clc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_clc_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_clc_LDADD = lib/libwire.la

tests_fuzz_fuzz_llc_SOURCES = tests/fuzz/fuzz_llc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_llc_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_llc_LDADD = lib/libwire.la

tests_fuzz_fuzz_cdc_SOURCES = tests/fuzz/fuzz_cdc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_cdc_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_cdc_LDADD = lib/libwire.la

tests_fuzz_fuzz_tcpopt_SOURCES = tests/fuzz/fuzz_tcpopt.c $(FUZZ_MAIN)
tests_fuzz_fuzz_tcpopt_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tcpopt_LDADD = lib/libwire.la

tests_fuzz_fuzz_control_SOURCES = tests/fuzz/fuzz_control.c $(FUZZ_MAIN)
tests_fuzz_fuzz_control_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_control_LDADD = daemon/libcontrol.la lib/libbase.la

tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(FUZZ_MAIN)
tests_fuzz_fuzz_config_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_config_LDADD = daemon/libsmcrd.la lib/libbase.la

tests_fuzz_fuzz_mpa_SOURCES = tests/fuzz/fuzz_mpa.c $(FUZZ_MAIN)
tests_fuzz_fuzz_mpa_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_mpa_LDADD = lib/libiwarp.la

tests_fuzz_fuzz_stream_SOURCES = tests/fuzz/fuzz_stream.c $(FUZZ_MAIN)
tests_fuzz_fuzz_stream_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_stream_LDADD = lib/libiwarp.la

# Allocations can be refused, and what the engine takes by pages is in memory that sanitizers guard.
tests_fuzz_fuzz_engine_SOURCES = tests/fuzz/fuzz_engine.c $(FUZZ_MAIN) $(FUZZ_STEPS) \
	tests/fuzz/arena.c tests/fuzz/arena.h \
	tests/fuzz/rival.c tests/fuzz/rival.h tests/fuzz/rival_llc.c tests/fuzz/rival_twist.c \
	tests/fuzz/twist.c tests/fuzz/twist.h \
	tests/fuzz/witness.c tests/fuzz/witness.h \
	tests/scenario/bounds.c tests/scenario/bounds.h \
	tests/fuzz/guarded_pages.c \
	tests/scenario/oom.c tests/scenario/oom.h
tests_fuzz_fuzz_engine_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS) \
	$(OOM_WRAP) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_engine_LDADD = lib/libsmcr.la tests/libsim.la lib/libwire.la lib/libbase.la

# The device's system calls go to sockets in memory.
tests_fuzz_fuzz_siw_SOURCES = tests/fuzz/fuzz_siw.c $(FUZZ_MAIN) $(FUZZ_STEPS) tests/fuzz/guarded_pages.c \
	tests/fuzz/mpa_rival.c tests/fuzz/mpa_rival.h \
	tests/fuzz/sockets.c tests/fuzz/sockets.h \
	tests/fuzz/twist.c tests/fuzz/twist.h \
	tests/scenario/oom.c tests/scenario/oom.h
tests_fuzz_fuzz_siw_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS) \
	$(OOM_WRAP) $(SOCKETS_WRAP) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_siw_LDADD = lib/libsiw.la lib/libiwarp.la lib/libwire.la lib/libbase.la
