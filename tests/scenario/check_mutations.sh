#!/bin/sh
# Whether the lines that each mutation replaces are in the sources, as TAP.
exec "${top_srcdir:-.}/tests/scenario/mutate" --applies
