# What unit tests share; they are listed in the fragments of the folders that they test.
if HAVE_CHECK
check_LIBRARIES += tests/libtest.a
endif
tests_libtest_a_SOURCES = \
	tests/numbered.h tests/poll_loop.h tests/rnic_end.h tests/rnic_stats.h tests/seeded_rng.h tests/ssn_world.h tests/unit/addrs.h tests/unit/captured.h tests/unit/checks.h tests/unit/clc_bytes.h tests/unit/golden.h tests/unit/fake_report.h tests/unit/some_documents.h tests/unit/hex.h tests/unit/one_parsed.h tests/unit/one_service.h tests/unit/unit.h tests/unit/vectors.h \
	tests/unit/confine_child.h tests/unit/open_fds.h tests/unit/own_netns.h tests/unit/sweep.h tests/unit/tcp_pair.h \
	tests/unit/rnic_ends.h tests/unit/siw_ends.h tests/unit/siw_raw_peer.h tests/unit/verbs_ends.h tests/unit/lib/tls/tls_ends.h tests/unit/lib/tls/tls_exporter.h \
	tests/unit/duo.c tests/unit/duo.h tests/unit/host.c tests/unit/host.h tests/unit/fake_rnic.c tests/unit/fake_rnic.h \
	tests/unit/smcr_help.h

# Stand-ins for a part of the product.
FAKE_ENGINE = tests/unit/fake_smcr.c tests/unit/fake_smcr.h tests/unit/gateway.h
FAKE_IBVERBS = tests/unit/fake_ibverbs.c tests/unit/fake_ibverbs.h tests/unit/fake_rdmacm.c tests/unit/fake_rdmacm.h
FAKE_LOOP = tests/unit/fake_loop.c tests/unit/fake_loop.h
FAKE_VERBS = tests/unit/fake_verbs.c tests/unit/fake_verbs.h
FAKE_WORKERS = tests/unit/fake_workers.c tests/unit/fake_workers.h
FAKE_WORKER = tests/unit/fake_worker.c tests/unit/fake_worker.h $(FAKE_WORKERS)

# Stand-ins for the C library, for programs linked with these flags: allocations that fail (oom.h), sockets in memory (sockets.h).
check_LIBRARIES += tests/libwrap.a
tests_libwrap_a_SOURCES = tests/scenario/oom.c tests/scenario/oom.h tests/fuzz/sockets.c tests/fuzz/sockets.h
OOM_WRAP = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=mmap
SOCKETS_WRAP = \
	-Wl,--wrap=socket -Wl,--wrap=bind -Wl,--wrap=listen -Wl,--wrap=connect -Wl,--wrap=accept4 \
	-Wl,--wrap=getpeername -Wl,--wrap=getsockname -Wl,--wrap=getsockopt -Wl,--wrap=setsockopt \
	-Wl,--wrap=send -Wl,--wrap=recv -Wl,--wrap=sendmsg -Wl,--wrap=recvmsg -Wl,--wrap=shutdown \
	-Wl,--wrap=close -Wl,--wrap=getifaddrs

# Checks of the tree itself.
check_ONCE += tests/unit/check_documents.py tests/unit/check_kubernetes.py tests/unit/check_layers.sh tests/unit/check_budgets.py tests/unit/check_patience.py tests/unit/check_format.sh tests/unit/check_hardening.sh tests/unit/check_assertions.sh tests/unit/check_demo.sh
EXTRA_DIST += tests/unit/check_documents.py tests/unit/check_kubernetes.py tests/unit/check_layers.sh tests/unit/check_budgets.py tests/unit/check_patience.py tests/unit/check_format.sh tests/unit/check_hardening.sh tests/unit/check_assertions.sh tests/unit/check_demo.sh
