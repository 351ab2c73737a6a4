# smcrctl; all of it but main() in a library, so that tests link the real code.
noinst_LIBRARIES += ctl/libsmcrctl.a
ctl_libsmcrctl_a_SOURCES = \
	ctl/ask.c ctl/ask.h \
	ctl/doctor.c ctl/doctor.h \
	ctl/doctor_checks.c ctl/doctor_parts.h \
	ctl/doctor_down.c \
	ctl/doctor_rules.c \
	ctl/history.c ctl/history.h \
	ctl/options.c ctl/options.h \
	ctl/routes.c ctl/routes.h \
	ctl/show.c ctl/show.h \
	ctl/show_lists.c \
	ctl/template.c ctl/template.h \
	ctl/top.c ctl/top.h \
	ctl/delta.c ctl/delta.h \
	ctl/capture.c ctl/capture.h \
	ctl/text.c ctl/text.h
ctl_libsmcrctl_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

bin_PROGRAMS += smcrctl
smcrctl_SOURCES = ctl/smcrctl.c
smcrctl_LDADD = ctl/libsmcrctl.a lib/libbase.a $(JANSSON_LIBS)

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = ctl/completion/smcrctl ctl/completion/smcrd
# Debian's zsh looks in another directory: debian/rules.
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = ctl/completion/_smcrctl ctl/completion/_smcrd

check_UNIT += \
	tests/unit/ctl/check_ctl_show \
	tests/unit/ctl/check_template \
	tests/unit/ctl/check_ctl_history \
	tests/unit/ctl/check_top \
	tests/unit/ctl/check_delta \
	tests/unit/ctl/check_routes tests/unit/ctl/check_capture_rules \
	tests/unit/ctl/check_doctor_rules \
	tests/unit/ctl/check_ctl_options

# smcrctl itself against the real control socket in front of a worker of fixed data.
check_PROGRAMS += tests/unit/fake_smcrd
tests_unit_fake_smcrd_SOURCES = tests/unit/fake_smcrd.c $(FAKE_WORKER)
tests_unit_fake_smcrd_LDADD = $(SMCRD_LIBS) lib/libwire.a $(ISAL_LIBS) lib/libbase.a
check_ONCE += tests/unit/check_completion.sh
check_TAP += tests/unit/check_smcrctl.sh
EXTRA_DIST += tests/unit/check_completion.sh tests/unit/check_smcrctl.sh
