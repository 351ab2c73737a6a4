/* smcrctl: shows and steers a running smcrd by its control socket. */
#include <locale.h>

#include "ctl/options.h"
#include "ctl/run.h"

int
main(int argc, char **argv)
{
	struct options o;

	setlocale(LC_CTYPE, "");
	switch (options_parse(argc, argv, &o, stdout, stderr)) {
	case OPTIONS_RUN:
		return run(&o);
	case OPTIONS_DONE:
		return EXIT_WELL;
	case OPTIONS_WRONG:
		break;
	}
	return EXIT_TROUBLE;
}
