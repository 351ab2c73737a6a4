# see the top Makefile.am
