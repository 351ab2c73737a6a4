# The package for Debian is built of what "make dist" packs: debian/ is on top of it.
EXTRA_DIST += debian/README.Debian debian/changelog debian/control debian/copyright debian/rules debian/smcrd.dirs \
	debian/smcrd.postinst debian/smcrd.postrm debian/smcrd.prerm \
	debian/source/format debian/tests/control debian/tests/pair
check_ONCE += tests/package/check_package.sh
EXTRA_DIST += tests/package/build tests/package/check_package.sh tests/package/container.py tests/package/ansible
