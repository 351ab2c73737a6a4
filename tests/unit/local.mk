# Checks of the tree itself; the unit tests are listed in the fragments of the folders that they test.
check_TAP += tests/unit/check_layers.sh tests/unit/check_format.sh tests/unit/check_hardening.sh tests/unit/check_assertions.sh
EXTRA_DIST += tests/unit/check_layers.sh tests/unit/check_format.sh tests/unit/check_hardening.sh tests/unit/check_assertions.sh
