# see the top Makefile.am
include tests/fuzz/local.mk
include tests/sim/local.mk
include tests/unit/local.mk
include tests/scenario/local.mk
include tests/referee/local.mk
include tests/interop/local.mk
EXTRA_DIST += demo.sh test.sh tests/README.md tests/tools/ddp_sctp.lua tests/tools/packages.sh tests/tools/syscalls.py
include tests/bench/local.mk
include tests/integration/local.mk
