#!/bin/sh
# The code is laid out as .clang-format says, by the version of Debian 12: others differ in details.
cd "${top_srcdir:-.}" || exit 1

echo "1..1"
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
	echo "ok 1 - layout of the code # SKIP no clang-format 14"
	exit 0
fi
wrong=$(find lib daemon ctl local tests -name '*.[ch]' | sort | xargs clang-format --dry-run 2>&1 | grep 'warning:' | head -n 20)
if [ -n "$wrong" ]; then
	echo "$wrong" | sed 's/^/# /'
	echo "not ok 1 - layout of the code (make format mends it)"
else
	echo "ok 1 - layout of the code"
fi
