check_BENCH = tests/bench/check_bench.py
check_TAP += $(check_BENCH)
EXTRA_DIST += $(check_BENCH) \
	tests/bench/bench.py \
	tests/bench/document.py \
	tests/bench/idle.py \
	tests/bench/measure.py \
	tests/bench/rows.py \
	tests/bench/stats.py \
	tests/bench/table.py \
	tests/bench/ways.py

# Not part of the tests: takes half an hour and wants the machine for itself. Options: make bench BENCH='--quick --row idle', and
# against an older build: make bench BENCH='--old DIRECTORY'
.PHONY: bench
bench: all
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		$(PYTHON3) $(srcdir)/tests/bench/bench.py $(BENCH)
