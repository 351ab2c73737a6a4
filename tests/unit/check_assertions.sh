#!/bin/sh
# Each assertion of lib/, daemon/ and ctl/ has its row in doc/assertions.md, and each row its assertion: two that are the same
# have two. An assertion stands on one line of its own; what does not cannot be compared, and fails.
cd "${top_srcdir:-.}" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
one='^([^:]*):[0-9]+:[[:space:]]*assert\((.*)\);([[:space:]]*/[*/].*)?$'
grep -rnE '(^|[^_a-zA-Z0-9])assert[[:space:]]*\(' lib daemon ctl --include='*.[ch]' > "$tmp/all"
sed -nE "s,$one,\\1 \\2,p" "$tmp/all" | sort > "$tmp/found"
sed -nE 's/^\| ((lib|daemon|ctl)[^ ]*) \| `([^`]*)` \|.*$/\1 \3/p' doc/assertions.md | sort > "$tmp/said"
# result NUMBER NAME WHAT LINES: fails with the lines, if there are any
result() {
	if [ -z "$4" ]; then echo "ok $1 - $2"; else
		echo "not ok $1 - $2"; echo "$4" | sed "s/^/# $3: /"; fi
}
echo 1..4
[ -s "$tmp/found" ] && echo "ok 1 - there are assertions" || echo "not ok 1 - there are assertions"
result 2 "each assertion can be read" "not on a line of its own" "$(grep -vE "$one" "$tmp/all")"
result 3 "each assertion is explained" "no row for" "$(comm -23 "$tmp/found" "$tmp/said")"
result 4 "each explanation has its assertion" "no assertion for" "$(comm -13 "$tmp/found" "$tmp/said")"
