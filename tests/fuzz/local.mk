# To add a target: tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput(), seeds in tests/fuzz/corpus/fuzz_NAME/
# (at least one file), one line in FUZZ_TARGETS and one like those at the end of this file.
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
	tests/fuzz/fuzz_handover \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_proxy \
	tests/fuzz/fuzz_mpa \
	tests/fuzz/fuzz_stream \
	tests/fuzz/fuzz_ddp_session \
	tests/fuzz/fuzz_ssn \
	tests/fuzz/fuzz_engine \
	tests/fuzz/fuzz_siw
if HAVE_USRSCTP
FUZZ_TARGETS += tests/fuzz/fuzz_siw_sctp
endif
if HAVE_OPENSSL
FUZZ_TARGETS += tests/fuzz/fuzz_tls
endif

if FUZZING
noinst_PROGRAMS += $(FUZZ_TARGETS)
FUZZ_STEPS = tests/fuzz/steps.c tests/fuzz/steps.h tests/fuzz/steps_mutate.c
FUZZ_LIBS = $(FUZZ_LDFLAGS) tests/libwrap.a $(REST_LIBS)
else
check_FUZZ += $(FUZZ_TARGETS)
FUZZ_STEPS = tests/fuzz/steps.c tests/fuzz/steps.h
FUZZ_LIBS = tests/libfuzz.a tests/libwrap.a $(REST_LIBS)
endif
# main() of a target that libFuzzer does not drive.
check_LIBRARIES += tests/libfuzz.a
tests_libfuzz_a_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz.h
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/coverage tests/fuzz/README.md

tests_fuzz_fuzz_clc_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_llc_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_cdc_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_tcpopt_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_control_LDADD = $(SMCRD_LIBS) $(FUZZ_LIBS)
# Both sides of a hand-over: the old one's control socket with a worker of fixed data, and the new one, whose connect() leads to
# what the target has said before. Allocations can be refused.
tests_fuzz_fuzz_handover_SOURCES = tests/fuzz/fuzz_handover.c tests/fuzz/fuzz_handover.h $(FUZZ_STEPS) \
	tests/fuzz/handover_old.c tests/fuzz/handover_new.c \
	tests/fuzz/handover_rival.c tests/fuzz/handover_rival.h \
	tests/fuzz/descriptors.c tests/fuzz/descriptors.h \
	$(FAKE_WORKER) $(FAKE_LOOP)
tests_fuzz_fuzz_handover_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) -Wl,--wrap=connect
tests_fuzz_fuzz_handover_LDADD = $(SMCRD_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_config_LDADD = $(SMCRD_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_proxy_LDADD = $(SMCRD_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_tls_LDADD = $(TLS_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_mpa_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_stream_LDADD = $(FUZZ_LIBS)

tests_fuzz_fuzz_ddp_session_SOURCES = tests/fuzz/fuzz_ddp_session.c $(FUZZ_STEPS)
tests_fuzz_fuzz_ddp_session_LDADD = $(FUZZ_LIBS)
# What is held is in memory that sanitizers guard.
tests_fuzz_fuzz_ssn_SOURCES = tests/fuzz/fuzz_ssn.c $(FUZZ_STEPS) tests/fuzz/guarded_pages.c tests/ssn_world.h
tests_fuzz_fuzz_ssn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_ssn_LDADD = $(FUZZ_LIBS)

# Allocations can be refused, and what the engine takes by pages is in memory that sanitizers guard.
tests_fuzz_fuzz_engine_SOURCES = tests/fuzz/fuzz_engine.c $(FUZZ_STEPS) \
	tests/fuzz/arena.c tests/fuzz/arena.h \
	tests/fuzz/rival.c tests/fuzz/rival.h tests/fuzz/rival_clc.c tests/fuzz/rival_llc.c tests/fuzz/rival_open.c tests/fuzz/rival_twist.c \
	tests/fuzz/twist.c tests/fuzz/twist.h \
	tests/fuzz/witness.c tests/fuzz/witness.h \
	tests/scenario/bounds.c tests/scenario/bounds.h \
	tests/fuzz/guarded_pages.c
tests_fuzz_fuzz_engine_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_engine_LDADD = $(FUZZ_LIBS)

# A soft iWARP device, its user and an honest peer; the device's system calls go to sockets in memory.
FUZZ_SIW_ARENA = tests/fuzz/siw_arena.c tests/fuzz/siw_arena.h tests/fuzz/ddp_rival.c tests/fuzz/ddp_rival.h \
	tests/fuzz/twist.c tests/fuzz/twist.h
tests_fuzz_fuzz_siw_SOURCES = tests/fuzz/fuzz_siw.c $(FUZZ_STEPS) tests/fuzz/guarded_pages.c \
	$(FUZZ_SIW_ARENA) tests/fuzz/mpa_rival.c tests/fuzz/mpa_rival.h
tests_fuzz_fuzz_siw_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(SOCKETS_WRAP) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_siw_LDADD = $(FUZZ_LIBS)

# The same over SCTP: datagrams in memory, and libusrsctp's clock is the target's.
DATAGRAMS_WRAP = \
	-Wl,--wrap=socket -Wl,--wrap=bind -Wl,--wrap=connect -Wl,--wrap=getsockname -Wl,--wrap=getsockopt \
	-Wl,--wrap=setsockopt -Wl,--wrap=sendmsg -Wl,--wrap=recvmsg -Wl,--wrap=close -Wl,--wrap=getifaddrs
tests_fuzz_fuzz_siw_sctp_SOURCES = tests/fuzz/fuzz_siw_sctp.c $(FUZZ_STEPS) tests/fuzz/guarded_pages.c \
	$(FUZZ_SIW_ARENA) tests/fuzz/sctp_rival.c tests/fuzz/sctp_rival.h \
	tests/fuzz/datagrams.c tests/fuzz/datagrams.h
tests_fuzz_fuzz_siw_sctp_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(DATAGRAMS_WRAP) -Wl,--wrap=pages_alloc -Wl,--wrap=pages_free
tests_fuzz_fuzz_siw_sctp_LDADD = $(FUZZ_LIBS)
