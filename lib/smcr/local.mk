# The engine; its rooms are lib/smcr/state, data, group and rendezvous.
noinst_LTLIBRARIES += lib/libsmcr.la
lib_libsmcr_la_SOURCES = \
	lib/smcr/smcr.h \
	lib/smcr/engine.c lib/smcr/engine.h \
	lib/smcr/info.c
lib_libsmcr_la_LIBADD = lib/libsmcr_data.la

include lib/smcr/data/local.mk
include lib/smcr/group/local.mk
include lib/smcr/rendezvous/local.mk
