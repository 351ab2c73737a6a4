# see the top Makefile.am
# An independent peer in Python against the C code: see pyiwarp.py and pysmc.py.
check_TAP += tests/interop/test_self.py
EXTRA_DIST += tests/interop/pyiwarp.py tests/interop/pysmc.py tests/interop/test_self.py tests/interop/siw-rping.txt
