EXTRA_DIST += tests/bench/bench.py

# Not part of the tests: takes minutes and wants the machine for itself. Options: make bench BENCH='--quick --row idle', and
# against an older build: make bench BENCH='--old DIRECTORY'
.PHONY: bench
bench: all
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		$(PYTHON3) $(srcdir)/tests/bench/bench.py $(BENCH)
