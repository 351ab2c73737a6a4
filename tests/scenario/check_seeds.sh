#!/bin/sh
# The seeds of every test run: fixed ones and some of today's, as TAP.
exec "${top_builddir:-.}/tests/scenario/run" --tap
