dist_man_MANS += man/smcrctl.8 man/smcrd.8 man/smcrd.conf.5 man/smcrd-run.1

check_ONCE += tests/unit/check_man.sh
EXTRA_DIST += tests/unit/check_man.sh
