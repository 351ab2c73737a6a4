# see the top Makefile.am
include tests/fuzz/local.mk
