#!/bin/bash
# demo.sh starts on nothing but its bare name: it would install and build.
cd "${top_srcdir:-.}" || exit 1
n=0
result() {
	n=$((n + 1))
	[ "$2" -eq 0 ] && echo "ok $n - $1" || echo "not ok $n - $1"
}

echo "1..2"
out=$(timeout 60 ./demo.sh --help 2>&1) && [[ $out == *"two daemons on loopback"* && $out != *"set -u"* ]]
result "--help says what it does" $?
out=$(timeout 60 ./demo.sh quick 2>&1); [ $? -eq 2 ] && [[ $out == *"unexpected argument quick"* ]]
result "arguments are refused" $?
