noinst_LTLIBRARIES += lib/libsmcr.la
lib_libsmcr_la_SOURCES = \
	lib/smcr/smcr.h \
	lib/smcr/engine.c lib/smcr/engine.h \
	lib/smcr/peer.c lib/smcr/peer.h \
	lib/smcr/rendezvous.c lib/smcr/rendezvous.h \
	lib/smcr/rdv_client.c \
	lib/smcr/rdv_server.c \
	lib/smcr/lgr.c lib/smcr/lgr.h \
	lib/smcr/link.c lib/smcr/link.h \
	lib/smcr/llc.c lib/smcr/llc.h lib/smcr/llc_impl.h \
	lib/smcr/llc_link.c \
	lib/smcr/llc_rkey.c \
	lib/smcr/llc_test.c \
	lib/smcr/info.c
