#!/bin/sh
# Every scenario that is written as a text, as TAP.
exec "${top_builddir:-.}/tests/scenario/run" --tap "${top_srcdir:-.}"/tests/scenario/scripts/*.txt
