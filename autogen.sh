#!/bin/sh
# Makes configure from configure.ac; needs autoconf, automake and pkg-config.
cd "$(dirname "$0")" && mkdir -p m4 && exec autoreconf -fi
