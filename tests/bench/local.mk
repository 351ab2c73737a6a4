check_BENCH = tests/bench/check_bench.py
check_ONCE += $(check_BENCH)
EXTRA_DIST += $(check_BENCH) \
	tests/bench/bench.py \
	tests/bench/document.py \
	tests/bench/first_byte.py \
	tests/bench/idle.py \
	tests/bench/link.py \
	tests/bench/measure.py \
	tests/bench/plot.py \
	tests/bench/rows.py \
	tests/bench/setups.py \
	tests/bench/stats.py \
	tests/bench/table.py \
	tests/bench/ways.py

# Programs of the benchmark; its test has them, too.
bench_programs = tests/bench/delay_link tests/bench/open_load
check_PROGRAMS += $(bench_programs)
tests_bench_delay_link_LDADD =
tests_bench_open_load_LDADD = -lm

# Not part of the tests: takes an hour and wants the machine for itself. Options: make bench BENCH='--quick --row idle', and
# against an older build: make bench BENCH='--old DIRECTORY'
.PHONY: bench
bench: all $(bench_programs)
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		$(PYTHON3) $(srcdir)/tests/bench/bench.py $(BENCH)
