#!/bin/bash
# Everything that can be checked, from a clean clone, with one command: installs what is missing (as root), builds with
# gcc and -Werror, runs all tests; the same with ASan and UBSan, and three workers in each daemon; those of threads with
# TSan; builds with clang without a warning, with all libraries and without those that smcrd can do without; lets each fuzzer
# look for new inputs for a few seconds; and runs the tests that need RDMA devices in a virtual machine. The last line is
# "N passed, N failed, N skipped" over all suites; the exit status is non-zero when anything failed.
#
# Usage: ./test.sh [gcc] [sanitizers] [threads] [clang] [fuzz] [vm]	without arguments: all six
set -u
cd "$(dirname "$0")" || exit 1
. tests/tools/packages.sh
trap packages_cleanup EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0 skipped=0
jobs=$(nproc)
stages=${*:-gcc sanitizers threads clang fuzz vm}
fuzz_seconds=5 program_seconds=20

say() { printf '== %s (%s)\n' "$*" "$(date +%T)"; }

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}

# build DIR CONFIGURE-ARGUMENT...: configures and makes everything, tests included, in a directory of its own.
build() {
	local dir=$1; shift
	mkdir -p "$dir"
	if ! ( cd "$dir" && ../configure -q "$@" && make -s -j"$jobs" all && make -s -j"$jobs" check TESTS= ) \
		> "$dir/build.log" 2>&1; then
		grep -nE -A4 'error|warning' "$dir/build.log" | head -n 60 || tail -n 40 "$dir/build.log"
		echo "FAILED: build in $dir, see $dir/build.log"
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + 1))
}

count() { sed -n "s/^# $2: *//p" "$1" | head -n 1; }

# suite DIR: runs the tests there and adds up what they say.
suite() {
	local dir=$1 log=$1/test-suite.log n
	rm -f "$log"
	( cd "$dir" && timeout -k 60 2400 make -s -j"$jobs" -k check ) > "$dir/check.log" 2>&1 < /dev/null
	grep -E '^(FAIL|ERROR|XPASS):' "$dir/check.log"
	if [ ! -f "$log" ]; then
		tail -n 40 "$dir/check.log"
		echo "FAILED: no result of the tests in $dir, see $dir/check.log"
		failed=$((failed + 1))
		return
	fi
	n=$(( $(count "$log" FAIL) + $(count "$log" ERROR) + $(count "$log" XPASS) ))
	if [ "$n" -gt 0 ]; then
		sed -n '/^\(FAIL\|ERROR\): tests/,$p' "$log" | head -n 400
	fi
	grep -h '^ok .*# SKIP' "$dir"/tests/*/*.log 2>/dev/null | sort -u | sed 's/^ok [0-9]* - /skipped: /' | head -n 20
	failed=$((failed + n))
	passed=$((passed + $(count "$log" PASS) + $(count "$log" XFAIL)))
	skipped=$((skipped + $(count "$log" SKIP)))
	echo "$dir: $(count "$log" PASS) passed, $n failed, $(count "$log" SKIP) skipped"
}

# fuzz DIR: what was found stays in DIR/found.
fuzz() {
	local dir=$1 target name seconds
	for target in "$dir"/tests/fuzz/fuzz_*; do
		name=${target##*/}
		[ -f "$target" ] && [ -x "$target" ] && [ "$name" = "${name%.*}" ] || continue
		mkdir -p "$dir/new/$name" "$dir/found/$name"
		case $name in fuzz_engine|fuzz_siw|fuzz_siw_sctp) seconds=$program_seconds;; *) seconds=$fuzz_seconds;; esac
		if "$target" -max_total_time=$seconds -artifact_prefix="$dir/found/$name/" "$dir/new/$name" \
			"tests/fuzz/corpus/$name" > "$dir/$name.log" 2>&1 < /dev/null; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAILED: $name"
			tail -n 30 "$dir/$name.log"
		fi
	done
}

# virtual DIR LOG ARGUMENT...: tests/interop/vm with the build in DIR.
virtual() {
	local dir=$1 log=$2
	shift 2
	top_builddir=$PWD/$dir SMCRD_VM_CACHE=$PWD/build-gcc/tests/interop/vm/kernel \
		timeout -k 60 1800 tests/interop/vm/run "$@" > "$log" 2>&1 < /dev/null
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
		[ "$not" -gt 0 ] || not=1
	else
		grep -E 'kernel:|# SKIP|results' "$log"
	fi
	passed=$((passed + ok)) failed=$((failed + not)) skipped=$((skipped + skip))
	echo "$dir, in the virtual machine: $ok passed, $not failed, $skip skipped"
}

# threads DIR: tests in which threads meet, on ThreadSanitizer's build there.
threads() {
	local dir=$1 name log ok not
	for name in unit/check_mailbox unit/check_admission unit/check_workers unit/check_metrics_http integration/check_workers.py \
		integration/check_metrics.py integration/check_redis.py integration/check_lifecycle.py; do
		log=$dir/${name##*/}.tsan.log
		case $name in
		unit/*) set -- "$dir/tests/$name" ;;
		*) set -- "tests/$name" ;;
		esac
		SMCRD_WORKERS=3 top_srcdir=$PWD top_builddir=$PWD/$dir timeout -k 60 600 "$@" > "$log" 2>&1 < /dev/null
		ok=$(grep -c '^ok ' "$log") not=$(grep -cE '^not ok |^WARNING: ThreadSanitizer' "$log")
		if [ "$not" -gt 0 ] || [ "$ok" -eq 0 ]; then
			head -n 200 "$log"
			[ "$not" -gt 0 ] || not=1
		fi
		passed=$((passed + ok)) failed=$((failed + not))
		echo "$dir, $name: $ok passed, $not failed"
	done
}

# bare DIR: the programs with clang, without the libraries that they can do without, and the tests of what they say about that.
bare() {
	local dir=$1 name out ok not tests="check_config check_config_built check_config_files check_targets check_siw check_siw_sctp_none check_confine"
	mkdir -p "$dir"
	if ! ( cd "$dir" && ../configure -q CC=clang --enable-werror --without-libibverbs --without-libcares --without-usrsctp \
		--without-libseccomp && make -s -j"$jobs" smcrd smcrctl $(printf 'tests/unit/%s ' $tests) ) > "$dir/build.log" 2>&1; then
		grep -nE -A4 'error|warning' "$dir/build.log" | head -n 60 || tail -n 40 "$dir/build.log"
		echo "FAILED: build in $dir, see $dir/build.log"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + 1))
	for name in $tests; do
		out=$(top_srcdir=$PWD top_builddir=$PWD/$dir timeout -k 60 300 "$dir/tests/unit/$name" 2>&1 < /dev/null)
		ok=$(grep -c '^ok ' <<< "$out") not=$(grep -c '^not ok ' <<< "$out")
		if [ "$not" -gt 0 ] || [ "$ok" -eq 0 ]; then
			head -n 200 <<< "$out"
			[ "$not" -gt 0 ] || not=1
		fi
		passed=$((passed + ok)) failed=$((failed + not))
	done
	echo "$dir: without libibverbs, c-ares, libusrsctp and libseccomp"
}

case " $stages " in *" vm "*) packages_vm=$PACKAGES_VM;; *) packages_vm=;; esac
say packages
packages_install $PACKAGES_BUILD $PACKAGES_TEST $packages_vm || { failed=1; finish; }

say configure
if ! ./autogen.sh > autogen.log 2>&1; then
	cat autogen.log
	failed=1
	finish
fi
rm -f autogen.log

for stage in $stages; do
	case $stage in
	gcc)
		say "gcc, -Werror"
		build build-gcc CC=gcc --enable-werror && say "tests" && suite build-gcc ;;
	sanitizers)
		say "ASan and UBSan"
		build build-sanitizers CC=gcc --enable-sanitizers &&
			say "tests with ASan and UBSan, three workers" && SMCRD_WORKERS=3 suite build-sanitizers ;;
	threads)
		say "TSan"
		mkdir -p build-tsan
		if ( cd build-tsan && ../configure -q CC=gcc --enable-tsan && make -s -j"$jobs" smcrd smcrctl &&
			make -s -j"$jobs" tests/unit/check_mailbox tests/unit/check_admission tests/unit/check_workers tests/unit/check_metrics_http ) \
			> build-tsan/build.log 2>&1; then
			threads build-tsan
		else
			tail -n 40 build-tsan/build.log
			failed=$((failed + 1))
		fi ;;
	clang)
		say "clang, -Werror"
		build build-clang CC=clang --enable-werror
		say "clang, without what is optional"
		bare build-bare ;;
	fuzz)
		say "fuzzers"
		build build-fuzz CC=clang --enable-fuzzing && fuzz build-fuzz ;;
	vm)
		say "virtual machine"
		{ [ -x build-gcc/smcrd ] || build build-gcc CC=gcc --enable-werror; } && laboratory build-gcc
		[ ! -x build-sanitizers/smcrd ] || laboratory build-sanitizers traffic:Redis links:device ;;
	*)
		echo "unknown stage $stage"
		failed=$((failed + 1)) ;;
	esac
done
say "done"
finish
