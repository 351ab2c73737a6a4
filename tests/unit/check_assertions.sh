#!/bin/sh
# Each assertion of lib/, daemon/ and ctl/ has its row in doc/assertions.md, and each row its assertion.
cd "${top_srcdir:-.}" || exit 99
found=$(mktemp) && said=$(mktemp) || exit 99
trap 'rm -f "$found" "$said"' EXIT
grep -rnE '(^|[^_a-zA-Z])assert\(' lib daemon ctl --include='*.[ch]' |
	sed -nE 's/^([^:]*):[0-9]+:[[:space:]]*assert\((.*)\);.*$/\1 \2/p' | sort -u > "$found"
sed -nE 's/^\| ((lib|daemon|ctl)[^ ]*) \| `([^`]*)` \|.*$/\1 \3/p' doc/assertions.md | sort -u > "$said"
echo 1..2
missing=$(comm -23 "$found" "$said")
stale=$(comm -13 "$found" "$said")
if [ -s "$found" ] && [ -z "$missing" ]; then echo "ok 1 - each assertion is explained"; else
	echo "not ok 1 - each assertion is explained"; echo "$missing" | sed 's/^/# no row for: /'; fi
if [ -z "$stale" ]; then echo "ok 2 - each explanation has its assertion"; else
	echo "not ok 2 - each explanation has its assertion"; echo "$stale" | sed 's/^/# no assertion for: /'; fi
