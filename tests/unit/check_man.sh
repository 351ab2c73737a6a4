#!/bin/sh
# The manual pages are clean mdoc. References to pages that are not installed (ours) do not count. Quotes around what is shown
# literally belong to it: mdoc takes plain ones away, \(dq stands for one that is to be seen.
cd "${top_srcdir:-.}" || exit 1
set -- man/*.[0-9]
echo "1..$#"
n=0
for page; do
	n=$((n + 1))
	if ! command -v mandoc >/dev/null; then
		echo "ok $n - $page # SKIP mandoc is not installed"
		continue
	fi
	found=$(mandoc -T lint "$page" 2>&1 | grep -v -e 'referenced manual not found' -e 'outdated mandoc.db'
		grep -nE '^\.([A-Z].* )?(Ql|Li|Dq) .*"' "$page")
	if [ -z "$found" ]; then
		echo "ok $n - $page"
	else
		echo "$found" | sed 's/^/# /'
		echo "not ok $n - $page"
	fi
done
