#!/bin/sh
# What configure's hardening flags are for, looked for in the built smcrd and smcrctl: a flag that is given and lost on
# the way, or has no effect with this compiler, shows here.
cd "${top_builddir:-.}" || exit 1
cc=$(sed -n 's/^CC = //p' Makefile)
flags=$(sed -n 's/^HARDEN_\(CFLAGS\|LDFLAGS\) = //p' Makefile | paste -sd' ')
LC_ALL=C
export LC_ALL

n=0
# result NAME WHAT-IS-WRONG
result() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
given() {
	case " $flags " in *" $1 "*) true ;; *) false ;; esac
}
# has PROGRAM TEXT COMMAND...: says so when the output lacks the text
has() {
	program=$1 text=$2
	shift 2
	"$@" "$program" 2>&1 | grep -qE "$text" || echo "$program: no $text"
}
# each TEXT COMMAND...: of both programs
each() {
	for p in smcrd smcrctl; do
		has $p "$@"
	done
}

# Without these options configure hardens.
case $(./config.status --config) in
*-hardening* | *--enable-sanitizers* | *--enable-tsan* | *--enable-fuzzing* | *--enable-coverage*)
	echo '1..0 # SKIP configured without hardening, or with sanitizers'
	exit 0
	;;
esac
if ! command -v readelf >/dev/null; then
	echo '1..0 # SKIP readelf is not installed'
	exit 0
fi
echo 1..8
result 'position independent' "$(each 'Type: *DYN' readelf -h; each 'Flags:.* PIE' readelf -d)"
result 'resolved at start, read-only afterwards' "$(each 'BIND_NOW|Flags:.*NOW' readelf -d; each GNU_RELRO readelf -lW)"
result 'no executable stack' "$(each 'GNU_STACK .* RW +0x' readelf -lW)"
result 'nothing writable is executable' \
	"$(for p in smcrd smcrctl; do readelf -lW $p | grep -E 'LOAD.* RWE'; done)"
if given -fstack-protector-strong; then
	result 'stack protector' "$(each __stack_chk_fail readelf --dyn-syms -W)"
else
	skip 'stack protector' 'the compiler does not know it'
fi
case $flags in
*-D_FORTIFY_SOURCE=*)
	result 'checked string functions' "$(each '__(snprintf|fprintf|memcpy|printf|read|recv)_chk' readelf --dyn-syms -W)" ;;
*)
	skip 'checked string functions' 'the C library has none' ;;
esac
# The linker marks a program only if all of it is marked, which the C library's start files are not everywhere; so the
# objects count, and the program where the start files are marked.
object=lib/base/libbase_la-log.o
[ -f $object ] || object=$(ls lib/base/*log.o | head -n 1)
if given -fcf-protection; then
	bad=$(has "$object" 'IBT, SHSTK' readelf -n)
	start=$($cc -print-file-name=Scrt1.o 2>/dev/null)
	if [ -f "$start" ] && readelf -n "$start" | grep -q IBT; then
		bad="$bad$(each 'IBT, SHSTK' readelf -n)"
	fi
	result 'branches and returns are marked' "$bad"
else
	skip 'branches and returns are marked' 'not on this processor'
fi
if given -fstack-clash-protection; then
	# The flag leaves no mark besides code; a frame beyond a page is probed page by page.
	printf 'void use(char *);\nvoid f(void) { char b[65536]; use(b); }\n' > hardening-probe.c
	$cc -O2 $flags -S -o hardening-probe.s hardening-probe.c 2>/dev/null
	$cc -O2 -fno-stack-clash-protection -S -o hardening-none.s hardening-probe.c 2>/dev/null
	result 'large frames are probed' "$(! cmp -s hardening-probe.s hardening-none.s || echo 'the flag changes nothing')"
	rm -f hardening-probe.c hardening-probe.s hardening-none.s
else
	skip 'large frames are probed' 'the compiler does not know it'
fi
