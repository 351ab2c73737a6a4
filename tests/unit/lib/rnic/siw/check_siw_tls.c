/* Soft iWARP in TLS keeps to rnic.h as it does in clear. */
#define END_SECRET secret_of_both
static const unsigned char secret_of_both[34] = "the secret of a group, 32 bytes";
#include "check_siw.c"
