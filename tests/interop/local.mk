# see the top Makefile.am
# An independent peer in Python against the C code: see pyiwarp.py and pysmc.py.
INTEROP_TESTS = \
	tests/interop/test_smc_client.py \
	tests/interop/test_smc_server.py \
	tests/interop/test_iwarp.py \
	tests/interop/test_linux_client.py \
	tests/interop/test_linux_server.py
check_ONCE += tests/interop/test_self.py
check_SANITIZED += $(INTEROP_TESTS)
if HAVE_USRSCTP
check_SANITIZED += tests/interop/test_ddp_sctp.py
endif
EXTRA_DIST += $(INTEROP_TESTS) \
	tests/interop/test_self.py \
	tests/interop/test_ddp_sctp.py \
	tests/interop/pyiwarp.py \
	tests/interop/pysctp.py \
	tests/interop/pysctp_ddp.py \
	tests/interop/ksctp.py \
	tests/interop/pysmc.py \
	tests/interop/pylinux.py \
	tests/interop/iwarp_cases.py \
	tests/interop/sctp_cases.py \
	tests/interop/linux_scene.py \
	tests/interop/siw_scene.py \
	tests/interop/smc_scene.py \
	tests/interop/siw-rping.txt

# One soft iWARP device, driven by the scripts here.
check_PROGRAMS += tests/interop/siw_host
tests_interop_siw_host_SOURCES = tests/interop/siw_host.c tests/interop/words.h tests/poll_loop.h tests/rnic_end.h tests/rnic_stats.h
tests_interop_siw_host_LDADD = $(SIW) lib/librnic.a lib/libiwarp.a lib/libwire.a $(ISAL_LIBS) lib/libbase.a

# An engine with cards, in virtual time, likewise.
check_PROGRAMS += tests/interop/roce_host
tests_interop_roce_host_SOURCES = tests/interop/roce_host.c tests/interop/words.h
tests_interop_roce_host_LDADD = $(REST_LIBS)

# In a virtual machine: `make vm`, or a stage of test.sh. Not part of `make check`.
EXTRA_DIST += tests/interop/vm/README.md \
	tests/interop/vm/run \
	tests/interop/vm/machine.py \
	tests/interop/vm/kernel.sh \
	tests/interop/vm/siw.sh \
	tests/interop/vm/system.sh \
	tests/interop/vm/init \
	tests/interop/vm/guest \
	tests/interop/vm/rxe.py \
	tests/interop/vm/siw.py \
	tests/interop/vm/gates.py \
	tests/interop/vm/pair.py \
	tests/interop/vm/afsmc.py \
	tests/interop/vm/preload_smc.c \
	tests/interop/vm/real.py \
	tests/interop/vm/sctp_wire.py \
	tests/interop/vm/verbs_host.py \
	tests/interop/vm/smcnl.py \
	tests/interop/vm/traffic.py \
	tests/interop/vm/check_afsmc.py \
	tests/interop/vm/check_afsmc_peer.py \
	tests/interop/vm/check_afsmc_programs.py \
	tests/interop/vm/check_afsmc_programs_peer.py \
	tests/interop/vm/check_afsmc_contact.py \
	tests/interop/vm/check_afsmc_contact_peer.py \
	tests/interop/vm/check_afsmc_ends.py \
	tests/interop/vm/check_afsmc_ends_peer.py \
	tests/interop/vm/check_afsmc_links.py \
	tests/interop/vm/check_afsmc_links_peer.py \
	tests/interop/vm/check_afsmc_speed.py \
	tests/interop/vm/check_afsmc_speed_peer.py \
	tests/interop/vm/check_lab.py \
	tests/interop/vm/check_links.py \
	tests/interop/vm/check_pair.py \
	tests/interop/vm/check_pair_peer.py \
	tests/interop/vm/check_peers.py \
	tests/interop/vm/check_paths.py \
	tests/interop/vm/check_sctp.py \
	tests/interop/vm/check_sctp_kernel.py \
	tests/interop/vm/check_siw.py \
	tests/interop/vm/check_system.py \
	tests/interop/vm/check_traffic.py \
	tests/interop/vm/check_verbs.py \
	tests/interop/vm/check_wire.py \
	tests/interop/vm/check_wire_host.py

# What check_afsmc_programs.py puts into programs there. They are not built with the sanitizers that ours may have.
vm_needs = tests/interop/vm/preload_smc.so
check_DATA += tests/interop/vm/preload_smc.so
CLEANFILES += tests/interop/vm/preload_smc.so
tests/interop/vm/preload_smc.so: tests/interop/vm/preload_smc.c
	@$(MKDIR_P) tests/interop/vm
	$(AM_V_GEN)$(CC) -D_GNU_SOURCE $(WARN_CFLAGS) $(CFLAGS) -fPIC -shared -o $@ $(srcdir)/tests/interop/vm/preload_smc.c

# How fast the machines' clock goes.
vm_needs += tests/interop/vm/tsc_khz
check_PROGRAMS += tests/interop/vm/tsc_khz
tests_interop_vm_tsc_khz_LDADD =

# What check_verbs.py drives there.
if HAVE_IBVERBS
vm_needs += tests/interop/vm/verbs_host
check_PROGRAMS += tests/interop/vm/verbs_host
tests_interop_vm_verbs_host_SOURCES = tests/interop/vm/verbs_host.c tests/poll_loop.h tests/rnic_end.h tests/rnic_stats.h
tests_interop_vm_verbs_host_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS) -pthread
tests_interop_vm_verbs_host_LDADD = $(VRNIC) lib/librnic.a lib/libbase.a
endif

.PHONY: vm
vm: all $(vm_needs)
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		$(PYTHON3) $(srcdir)/tests/interop/vm/run $(VM)
