/* Soft iWARP over SCTP keeps to rnic.h as it does over TCP. */
#define OVER_SCTP 1
#include "check_siw.c"
