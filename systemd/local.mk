# Under systemd/ the snippets have other names than installed: sysusers.d/smcrd.conf and tmpfiles.d/smcrd.conf.
systemdsystemunit_DATA = systemd/smcrd.service systemd/smcrd@.service
dist_systemdsystemunit_DATA = systemd/smcrd-programs.slice systemd/smcrd-programs.service
CLEANFILES += systemd/smcrd.service systemd/smcrd@.service
# An example, not installed as a unit: which ports there are is in smcrd.conf.
examplesdir = $(docdir)/examples
dist_examples_DATA = systemd/smcrd.socket
# Explanations of journal entries. systemd's package makes them known when a package brings them (a trigger).
catalogdir = $(prefix)/lib/systemd/catalog
dist_catalog_DATA = systemd/smcrd.catalog
EXTRA_DIST += systemd/smcrd.service.in systemd/sysusers.conf systemd/tmpfiles.conf

# The same unit twice: of the daemon, and of an instance.
UNIT_DIRS = -e 's,@sbindir\@,$(sbindir),g' -e 's,@sysconfdir\@,$(sysconfdir),g'
UNIT_ONE = -e 's,@of\@,,; s,@options\@,,; s,@file\@,smcrd,; s,@directory\@,smcrd,'
UNIT_OF_INSTANCE = -e 's,@of\@,\, instance %i,; s,@options\@, -i %i,; s,@file\@,%i,; s,@directory\@,smcrd-%i,'
systemd/smcrd.service: $(top_srcdir)/systemd/smcrd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && sed $(UNIT_DIRS) $(UNIT_ONE) $(top_srcdir)/systemd/smcrd.service.in > $@
systemd/smcrd@.service: $(top_srcdir)/systemd/smcrd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && sed $(UNIT_DIRS) $(UNIT_OF_INSTANCE) $(top_srcdir)/systemd/smcrd.service.in > $@

install-data-local: install-snippets
install-snippets:
	$(MKDIR_P) $(DESTDIR)$(sysusersdir) $(DESTDIR)$(tmpfilesdir)
	$(INSTALL_DATA) $(top_srcdir)/systemd/sysusers.conf $(DESTDIR)$(sysusersdir)/smcrd.conf
	$(INSTALL_DATA) $(top_srcdir)/systemd/tmpfiles.conf $(DESTDIR)$(tmpfilesdir)/smcrd.conf
uninstall-local: uninstall-snippets
uninstall-snippets:
	rm -f $(DESTDIR)$(sysusersdir)/smcrd.conf $(DESTDIR)$(tmpfilesdir)/smcrd.conf
# What an installation lacks. A package, which installs below DESTDIR, does all of it by itself.
install-data-hook:
	@test -n "$(DESTDIR)" || $(MAKE) -s after-install
after-install:
	@printf '%s\n' '' 'What is left to do, as root:' \
		'  systemd-sysusers $(sysusersdir)/smcrd.conf	makes the user and the group smcrd' \
		'  systemctl daemon-reload			makes the unit known' \
		'  journalctl --update-catalog			makes the explanations of journalctl -x known' \
		'  usermod -aG smcrd NAME			lets NAME use smcrctl, from the next login on' \
		'  write $(sysconfdir)/smcrd/smcrd.conf (beside it is an example), look at it with smcrd -t' \
		'  systemctl enable --now smcrd			starts it, now and at boot'
.PHONY: install-snippets uninstall-snippets after-install

AM_DISTCHECK_CONFIGURE_FLAGS = --with-systemdsystemunitdir='$${prefix}/lib/systemd/system'

check_ONCE += tests/unit/check_systemd.sh tests/unit/check_install.sh
EXTRA_DIST += tests/unit/check_systemd.sh tests/unit/check_install.sh
