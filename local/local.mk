# For client programs that know only TCP: a preload, which needs nothing of the rest, the proof of a capture, and the script
# that uses them.
locallibdir = $(pkglibdir)
locallib_DATA = local/libsmcrd-local.so
local/libsmcrd-local.so: $(srcdir)/local/local.c
	$(AM_V_CCLD)$(MKDIR_P) local && $(CC) $(WARN_CFLAGS) -D_GNU_SOURCE -DRUNSTATEDIR='"$(runstatedir)"' $(CPPFLAGS) $(CFLAGS) \
		-fPIC -fvisibility=hidden -shared -Wl,-z,relro -Wl,-z,now $(LDFLAGS) -o $@ $(srcdir)/local/local.c

locallib_PROGRAMS = local/smcrd-captured
local_smcrd_captured_SOURCES = local/captured.c
local_smcrd_captured_LDADD =

bin_SCRIPTS = local/smcrd-run
local/smcrd-run: $(srcdir)/local/smcrd-run.in Makefile
	$(AM_V_GEN)$(MKDIR_P) local && sed 's|@pkglibdir@|$(pkglibdir)|' $(srcdir)/local/smcrd-run.in > $@ && chmod 755 $@
CLEANFILES += local/libsmcrd-local.so local/smcrd-run
EXTRA_DIST += local/local.c local/smcrd-run.in
