#!/bin/sh
# The seeds of every test run: those that failed once, fixed ones and some of today's, as TAP.
here=${top_srcdir:-.}/tests/scenario
exec "${top_builddir:-.}/tests/scenario/run" --tap --seeds "$here/seeds.txt"
