/* The page; see page.h. */
#include "daemon/metrics/page.h"

int
page_write(const struct documents *d, FILE *out)
{
	(void)d;
	fputs("<!DOCTYPE html>\n", out);
	return 0;
}
