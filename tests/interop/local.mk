# see the top Makefile.am
# An independent peer in Python against the C code: see pyiwarp.py and pysmc.py.
INTEROP_TESTS = \
	tests/interop/test_self.py \
	tests/interop/test_iwarp.py \
	tests/interop/test_smc_client.py \
	tests/interop/test_smc_server.py
check_TAP += $(INTEROP_TESTS)
EXTRA_DIST += $(INTEROP_TESTS) \
	tests/interop/pyiwarp.py \
	tests/interop/pysmc.py \
	tests/interop/smc_scene.py \
	tests/interop/siw-rping.txt

# One soft iWARP device, driven by the scripts here.
check_PROGRAMS += tests/interop/siw_host
tests_interop_siw_host_SOURCES = tests/interop/siw_host.c tests/poll_loop.h
tests_interop_siw_host_LDADD = lib/libsiw.la
