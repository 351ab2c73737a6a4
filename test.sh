#!/bin/bash
# Everything that can be checked, from a clean clone, with one command: installs what is missing (as root), builds with
# gcc and -Werror, runs all tests; the same with ASan and UBSan, and three workers in each daemon; those of threads with
# TSan; builds with clang without a warning, with all libraries and without those that smcrd can do without; lets each fuzzer
# look for new inputs for a few seconds; and runs the tests that need RDMA devices in a virtual machine. The last line is
# "N passed, N failed, N skipped" over all suites, below the names of what failed; the exit status is non-zero when anything failed.
#
# Usage: ./test.sh [--times N] [--beside N] [gcc] [sanitizers] [threads] [clang] [fuzz] [vm] [arm64] [musl]
# Without arguments: all six. Two are run by name only: arm64 (in qemu) and musl build what needs no other library than C's, the engine
# and its scenarios, and run those. `./test.sh quick`: the unit tests and ten of the others. --times: gcc's and the sanitizers' suite so
# often; --beside: with so many processes that take all of the processor that they get, to find what fails of that alone.
set -u
cd "$(dirname "$0")" || exit 1
. tests/tools/packages.sh
builder=
trap '[ -z "$builder" ] || kill -- -"$builder" 2> /dev/null; kill $(jobs -p) 2> /dev/null; packages_cleanup' EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0 skipped=0 unstable= names=
jobs=$(nproc)
times=1 beside=0
while [[ ${1:-} == --* && $# -gt 1 ]]; do
	case $1 in
	--times) times=$2 ;;
	--beside) beside=$2 ;;
	*) break ;;
	esac
	shift 2
done
[[ $times$beside =~ ^[0-9]+$ ]] || { echo "--times and --beside take numbers" >&2; exit 2; }
stages=${*:-gcc sanitizers threads clang fuzz vm}
fuzz_seconds=3 program_seconds=6
fuzzers=$(ls tests/fuzz/corpus)

say() { printf '== %s (%s)\n' "$*" "$(date +%T)"; }

# name LABEL: remembers what failed, a line each, for the end: a log is often cut to its tail.
name() { names=$names$(sed "s|^|$1: |")$'\n'; }

finish() {
	local cnt
	cnt=$(grep -c . <<< "$names")
	[ "$cnt" -eq 0 ] || { echo "failed:"; grep . <<< "$names" | head -n 40; }
	[ "$cnt" -le 40 ] || echo "... and $((cnt - 40)) more"
	[ -z "$unstable" ] || echo "unstable, failed once:$unstable"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}

# build DIR TARGETS CONFIGURE-ARGUMENT...: configures and makes the targets, or "everything", tests included, in a directory of
# its own. The product is optimized as configure says, tests as $tests says. gold, where it is, takes half of the usual linker's
# time or less for each of 250 programs; it complains of libFuzzer's symbols, and the package's test has the usual one.
build() {
	local dir=$1 targets=$2 linker=
	shift 2
	[[ $* == *fuzzing* ]] || ! command -v ld.gold > /dev/null || linker=-fuse-ld=gold
	mkdir -p "$dir"
	( cd "$dir" && ../configure -q LDFLAGS=$linker "$@" &&
		if [ "$targets" = everything ]; then
			make -s -j"$jobs" all && make -s -j"$jobs" check TESTS= CFLAGS="$tests"
		else
			make -s -j"$jobs" $targets
		fi ) > "$dir/build.log" 2>&1 < /dev/null
	echo $? > "$dir/build.status"
}

# builds: all of them, one after another, beside the tests of those before, which wait most of their time. With ccache, clang's
# second one has most of the first one's work. Warnings are what clang is asked for, not quick code.
builds() {
	local tests stage none="--without-libibverbs --without-libcares --without-usrsctp --without-libseccomp --without-openssl"
	local clang="CFLAGS=-O0 --disable-hardening --enable-werror"
	trap - EXIT INT TERM HUP
	renice -n 5 $BASHPID > /dev/null
	case " $stages " in *" gcc "*|*" quick "*|*" vm "*) tests="-g -O1" build build-gcc everything CC="ccache gcc" --enable-werror ;; esac
	case " $stages " in *" vm "*) virtual build-gcc build-gcc/vm.prepare.log --prepare & ;; esac
	for stage in $stages; do
		case $stage in
		sanitizers) tests=-O0 build build-sanitizers everything CC="ccache gcc" --enable-sanitizers ;;
		threads) build build-tsan "smcrd smcrctl $(units $threaded_units)" CC="ccache gcc" CFLAGS=-O0 --enable-tsan ;;
		clang)
			tests=-O0 build build-clang everything CC="ccache clang" $clang
			build build-bare "smcrd smcrctl $(units $bare_units)" CC="ccache clang" $clang $none ;;
		fuzz) build build-fuzz "$(printf 'tests/fuzz/%s ' $fuzzers)" CC="ccache clang" --enable-fuzzing ;;
		esac
	done
	wait
}

# built DIR: waits until that has been built; did it work?
built() {
	local dir=$1
	while [ ! -s "$dir/build.status" ] && kill -0 "$builder" 2> /dev/null; do sleep 0.2; done
	if [ "$(cat "$dir/build.status" 2> /dev/null)" != 0 ]; then
		grep -nE -A4 'error|warning' "$dir/build.log" | head -n 60 || tail -n 40 "$dir/build.log"
		echo "FAILED: build in $dir, see $dir/build.log"
		name "$dir" <<< "build"
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + 1))
}

# room N: waits until fewer than N of the processes in `running` are left.
running=
room() {
	local pid left
	while :; do
		left=
		for pid in $running; do ! kill -0 "$pid" 2> /dev/null || left="$left $pid"; done
		running=$left
		[ "$(wc -w <<< "$running")" -ge "$1" ] || return
		wait -n $running
	done
}

count() { sed -n "s/^# $2: *//p" "$1" | head -n 1; }

# burn: processes that take what they get of the processors; they end with the suite.
burn() {
	burning=
	for _ in $(seq "$beside"); do
		( trap - EXIT INT TERM HUP; while :; do :; done ) &
		burning="$burning $!"
	done
}

# suite DIR PATIENCE [MAKE-ARGUMENT...]: runs the tests there and adds up what they say. Most of them wait most of their time, so
# six share a processor, four with sanitizers, three beside burners, and deadlines are longer than where a test has one of its own.
# config.h is older than its stamp: make would run a command for it, and begin what needs it, each unit test, behind the scripts.
suite() {
	local turn
	for turn in $(seq "$times"); do
		[ "$times" -eq 1 ] || say "$1, $turn of $times"
		burn
		suite_once "$@"
		[ -z "$burning" ] || kill $burning
	done
}

# scripts LOG: those of make check there that have failed.
scripts() { sed -nE 's/^(FAIL|ERROR|XPASS): (tests\/[^ ]+).*/\2/p' "$1" | sort -u; }

# alone DIR PATIENCE: runs the scripts there that have failed once more, one after another. Those that pass now are unstable: shown, a
# defect each, but no reason to refuse a change. Runs that look for such scripts (--times, --beside) do not repeat them.
alone() {
	local dir=$1 first script
	first=$(scripts "$dir/check.log")
	cp "$dir/check.log" "$dir/check.log.first"
	echo "once more, alone:" $first
	( cd "$dir" && SMCRD_PATIENCE=$2 timeout -k 60 1200 make -s -k check TESTS="$(echo $first)" ) > "$dir/check.log" 2>&1 < /dev/null
	for script in $first; do
		if grep -qE "^PASS: $script( |$)" "$dir/check.log" && ! scripts "$dir/check.log" | grep -qx "$script"; then
			unstable="$unstable $script"
		else
			tail -n 100 "$dir/$script.log"
			grep -qE "^(FAIL|ERROR|XPASS): $script( |$)" "$dir/check.log" || echo "ERROR: $script - no result" >> "$dir/check.log"
		fi
	done
	n=$(grep -cE '^(FAIL|ERROR|XPASS):' "$dir/check.log")
}

suite_once() {
	local dir=$1 patience=$2 log=$1/test-suite.log n share=6
	shift 2
	[ "$dir" != build-sanitizers ] || share=4
	[ "$beside" -eq 0 ] || share=3
	patience=$((patience * (4 + beside) / 4))
	rm -f "$log"
	( cd "$dir" && SMCRD_PATIENCE=$patience timeout -k 60 $((2400 * (1 + beside))) \
		make -s -j$((share * jobs)) -k check AM_MAKEFLAGS="-o config.h" "$@" ) > "$dir/check.log" 2>&1 < /dev/null
	grep -E '^(FAIL|ERROR|XPASS):' "$dir/check.log"
	if [ ! -f "$log" ]; then
		tail -n 40 "$dir/check.log"
		echo "FAILED: no result of the tests in $dir, see $dir/check.log"
		name "$dir" <<< "no result of the tests"
		failed=$((failed + 1))
		return
	fi
	n=$(( $(count "$log" FAIL) + $(count "$log" ERROR) + $(count "$log" XPASS) ))
	if [ "$n" -gt 0 ]; then
		sed -n '/^\(FAIL\|ERROR\): tests/,$p' "$log" | head -n 400
		cp "$log" "$log.first"
		[ "$times$beside" != 10 ] || alone "$dir" "$patience"
		[ "$n" -eq 0 ] || name "$dir" < <(grep -E '^(FAIL|ERROR|XPASS):' "$dir/check.log")
		log=$log.first
	fi
	grep -h '^ok .*# SKIP' "$dir"/tests/*/*.log 2>/dev/null | sort -u | sed 's/^ok [0-9]* - /skipped: /' | head -n 20
	failed=$((failed + n))
	passed=$((passed + $(count "$log" PASS) + $(count "$log" XFAIL)))
	skipped=$((skipped + $(count "$log" SKIP)))
	echo "$dir: $(count "$log" PASS) passed, $n failed, $(count "$log" SKIP) skipped"
}

# fuzz_one DIR NAME: the new inputs that it finds are in DIR/new, those that break something stay in DIR/found.
fuzz_one() {
	local dir=$1 name=$2 seconds
	mkdir -p "$dir/new/$name" "$dir/found/$name"
	case $name in fuzz_engine|fuzz_siw|fuzz_siw_sctp) seconds=$program_seconds;; *) seconds=$fuzz_seconds;; esac
	"$dir/tests/fuzz/$name" -max_total_time=$seconds -artifact_prefix="$dir/found/$name/" "$dir/new/$name" \
		"tests/fuzz/corpus/$name" > "$dir/$name.log" 2>&1 < /dev/null
	echo $? > "$dir/$name.status"
}

# fuzz DIR: as many of them at once as there are processors.
fuzz() {
	local dir=$1 name
	for name in $fuzzers; do
		room "$jobs"
		fuzz_one "$dir" "$name" &
		running="$running $!"
	done
	room 1
	for name in $fuzzers; do
		if [ "$(cat "$dir/$name.status")" = 0 ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAILED: $name"
			name "$dir" <<< "$name"
			grep -E -m 1 -A 24 'ERROR: |runtime error: |Assertion ' "$dir/$name.log" || tail -n 24 "$dir/$name.log"
			find "$dir/found/$name" -type f -size -4k -exec sh -c 'echo "$1"; base64 -w 0 "$1"; echo' - {} \;
		fi
	done
}

# virtual DIR LOG ARGUMENT...: tests/interop/vm with the build in DIR.
virtual() {
	local dir=$1 log=$2
	shift 2
	top_builddir=$PWD/$dir SMCRD_VM_CACHE=${SMCRD_VM_CACHE:-$PWD/build-gcc/tests/interop/vm/kernel} \
		timeout -k 60 3000 tests/interop/vm/run "$@" > "$log" 2>&1 < /dev/null
}

# laboratory DIR [TEST...]: in the virtual machine; the sanitizers' build is too slow for all tests there. An emulated
# machine beside others may stand still for seconds: what fails is shown, runs once more alone, and fails if it does again.
laboratory() {
	local dir=$1 log=$1/vm.log rc ok not skip again
	shift
	virtual "$dir" "$log" "$@"
	rc=$?
	again=$(sed -nE 's/^not ok [0-9]+ - ([a-z_]+)[:,].*/\1/p' "$log" | sort -u)
	if [ "$rc" -ne 0 ] && [ -n "$again" ]; then
		head -n 400 "$log"
		echo "once more, alone:" $again
		grep -vE "^(not )?ok [0-9]+ - (${again//$'\n'/|})[:,]" "$log" > "$log.rest"
		virtual "$dir" "$log.again" -j 1 ${*:-$again}
		rc=$?
		[ $# -gt 0 ] || cat "$log.rest" >> "$log.again"
		log=$log.again
	fi
	ok=$(grep -c '^ok ' "$log") not=$(grep -c '^not ok ' "$log") skip=$(grep -cE '^ok .*# SKIP|^1\.\.0 # SKIP' "$log")
	ok=$((ok - $(grep -c '^ok .*# SKIP' "$log")))
	if [ "$rc" -ne 0 ]; then
		head -n 400 "$log"
		[ "$not" -gt 0 ] || { not=1; name "$dir" <<< "no result of the virtual machine"; }
		name "$dir" < <(grep '^not ok ' "$log")
	else
		grep -E 'kernel:|# SKIP|results' "$log"
	fi
	passed=$((passed + ok)) failed=$((failed + not)) skipped=$((skipped + skip))
	echo "$dir, in the virtual machine: $ok passed, $not failed, $skip skipped"
}

# threads DIR: tests in which threads meet, on ThreadSanitizer's build there, two for each processor.
threaded_units="daemon/loop/check_mailbox daemon/account/check_admission daemon/worker/check_workers daemon/metrics/check_metrics_http"
threaded="$(printf 'unit/%s ' $threaded_units) integration/check_workers.py integration/check_metrics.py
	integration/check_redis.py integration/check_lifecycle.py"
threads() {
	local dir=$1 name log ok not
	for name in $threaded; do
		case $name in
		unit/*) set -- "$dir/tests/$name" ;;
		*) set -- "tests/$name" ;;
		esac
		room $((2 * jobs))
		SMCRD_WORKERS=3 SMCRD_PATIENCE=6 top_srcdir=$PWD top_builddir=$PWD/$dir timeout -k 60 600 "$@" \
			> "$dir/${name##*/}.tsan.log" 2>&1 < /dev/null &
		running="$running $!"
	done
	room 1
	for name in $threaded; do
		log=$dir/${name##*/}.tsan.log
		ok=$(grep -c '^ok ' "$log") not=$(grep -cE '^not ok |^WARNING: ThreadSanitizer' "$log")
		if [ "$not" -gt 0 ] || [ "$ok" -eq 0 ]; then
			head -n 200 "$log"
			[ "$not" -gt 0 ] || not=1
			name "$dir, $name" < <(grep -E '^not ok |^WARNING: ThreadSanitizer' "$log" || echo "no result")
		fi
		passed=$((passed + ok)) failed=$((failed + not))
		echo "$dir, $name: $ok passed, $not failed"
	done
}

# bare DIR: tests of what the programs say about libraries that they can do without, on a build there without these.
bare_units="daemon/config/check_config daemon/config/check_config_built daemon/config/check_config_files daemon/target/check_targets lib/rnic/siw/check_siw lib/rnic/siw/check_siw_sctp_none daemon/confine/check_confine"
bare() {
	local dir=$1 name out ok not
	for name in $bare_units; do
		out=$(top_srcdir=$PWD top_builddir=$PWD/$dir timeout -k 60 300 "$dir/tests/unit/$name" 2>&1 < /dev/null)
		ok=$(grep -c '^ok ' <<< "$out") not=$(grep -c '^not ok ' <<< "$out")
		if [ "$not" -gt 0 ] || [ "$ok" -eq 0 ]; then
			head -n 200 <<< "$out"
			[ "$not" -gt 0 ] || not=1
			name "$dir, $name" < <(grep '^not ok ' <<< "$out" || echo "no result")
		fi
		passed=$((passed + ok)) failed=$((failed + not))
	done
	echo "$dir: without libibverbs, c-ares, libusrsctp, libseccomp and OpenSSL"
}

# foreign DIR RUNNER CC: the engine and a hundred of its scenarios by another compiler; static, so that RUNNER needs nothing else. The configuration
# is of this machine; a header of other libraries is found behind those of the compiler's C library.
foreign() {
	local dir=$1 runner=$2 cc=$3 ok not
	mkdir -p "$dir"
	if ! ( cd "$dir" && ../configure -q --disable-hardening &&
		make -s -j"$jobs" CC="$cc" CPPFLAGS="-idirafter /usr/include" CFLAGS=-O1 LDFLAGS=-static \
			REST_LIBS="tests/libsim.a lib/libsmcr.a lib/libwire.a lib/libbase.a" tests/scenario/run ) > "$dir/build.log" 2>&1 < /dev/null; then
		tail -n 40 "$dir/build.log"
		echo "FAILED: build in $dir"
		name "$dir" <<< "build"
		failed=$((failed + 1))
		return
	fi
	$runner "$dir/tests/scenario/run" --soak 100 --seed 1 --jobs "$jobs" > "$dir/seeds.log" 2>&1 < /dev/null
	not=$(sed -n 's/^100 runs, \([0-9]*\) failures.*/\1/p' "$dir/seeds.log")
	[ "$not" = 0 ] || { tail -n 200 "$dir/seeds.log"; not=${not:-100}; name "$dir" <<< "$not scenarios"; }
	ok=$((100 - not))
	passed=$((passed + ok)) failed=$((failed + not))
	echo "$dir, scenarios: $ok passed, $not failed"
}

units() { printf 'tests/unit/%s ' "$@"; }

more=
case " $stages " in *" vm "*) more=$PACKAGES_VM ;; esac
case " $stages " in *" arm64 "*) more="$more $PACKAGES_ARM64" ;; esac
case " $stages " in *" musl "*) more="$more musl-tools" ;; esac
say packages
packages_install $PACKAGES_BUILD $PACKAGES_TEST $more || { failed=1; finish; }
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH	# where python3 is a script that looks for it

say configure
if ! ./autogen.sh > autogen.log 2>&1; then
	cat autogen.log
	failed=1
	finish
fi
rm -f autogen.log

rm -f build-*/build.status
set -m		# a process group of its own, to be ended as a whole
builds &
builder=$!
set +m

for stage in $stages; do
	case $stage in
	gcc)
		say "gcc, -Werror"
		case " $stages " in *" sanitizers "*) left_out=check_SANITIZED= ;; *) left_out= ;; esac
		built build-gcc && say "tests" && suite build-gcc 6 $left_out ;;
	quick)
		say "gcc, -Werror"
		built build-gcc && say "unit tests, and some others" && suite build-gcc 6 'TESTS=$(check_QUICK) $(check_FUZZ) $(check_UNIT)' ;;
	sanitizers)
		say "ASan and UBSan"
		built build-sanitizers && say "tests with ASan and UBSan, three workers" && SMCRD_WORKERS=3 suite build-sanitizers 8 ;;
	threads)
		say "TSan"
		built build-tsan && threads build-tsan ;;
	clang)
		say "clang, -Werror"
		built build-clang
		say "clang, without what is optional"
		built build-bare && bare build-bare ;;
	fuzz)
		say "fuzzers"
		built build-fuzz && fuzz build-fuzz ;;
	vm)
		say "virtual machine"
		while kill -0 $builder 2> /dev/null; do sleep 0.2; done		# it prepares what machines need
		case " $stages " in *" gcc "*) [ -x build-gcc/smcrd ] ;; *) built build-gcc ;; esac && laboratory build-gcc
		[ ! -x build-sanitizers/smcrd ] || laboratory build-sanitizers traffic:Redis links:device ;;
	arm64)
		say "arm64, in qemu"
		foreign build-arm64 qemu-aarch64-static aarch64-linux-gnu-gcc ;;
	musl)
		say "musl"
		foreign build-musl "" musl-gcc ;;
	*)
		echo "unknown stage $stage"
		name "$stage" <<< "unknown stage"
		failed=$((failed + 1)) ;;
	esac
done
say "done, $((SECONDS / 60)) min $((SECONDS % 60)) s"
finish
