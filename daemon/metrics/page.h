/* Pages for people, without script and without anything from elsewhere: the daemon, and a service. Pure. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/control/snapshot.h"

enum page_show { PAGE_ALL, PAGE_BUSY, PAGE_TROUBLE, PAGE_SHOW_CNT };

/* What a client asked for. */
struct page_view {
	char service[CONFIG_NAME_MAX]; /* the page of this one */
	enum page_show show;           /* of services: all, with connections, with trouble or on TCP */
	unsigned from;                 /* the first service of those, from 0 */
};

extern const char *const page_show_words[PAGE_SHOW_CNT]; /* in a query */

void page_write(const struct snapshot *, const struct page_view *, FILE *);
/* False, and nothing is written: there is no such service. */
bool page_write_service(const struct snapshot *, const struct page_view *, FILE *);
