# see the top Makefile.am
include tests/fuzz/local.mk
include tests/unit/local.mk
