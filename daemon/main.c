#include "daemon/smcrd.h"

int
main(int argc, char **argv)
{
	return smcrd_main(argc, argv);
}
