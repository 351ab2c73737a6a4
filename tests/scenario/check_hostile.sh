#!/bin/sh
# Runs with a host that lies: the seeds that failed once, fixed ones, and as many of today's as there is time for, as TAP.
here=${top_srcdir:-.}/tests/scenario
exec "${top_builddir:-.}/tests/scenario/run" --tap --hostile --seeds "$here/hostile-seeds.txt"
