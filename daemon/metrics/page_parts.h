/* What the pages share: head, texts, cells and tables of HTML, charts of SVG. Every text of others is escaped here. Private to page*.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/control/snapshot.h"
#include "daemon/metrics/page.h"

#define PAGE_ROWS 100 /* of a table; services have further pages */

struct page {
	const struct snapshot *seen;
	const struct page_view *view;
	FILE *out;
	int64_t now_ms; /* time of day of the look */
};

/* -- page_parts.c -- */

/* Up to the heading; title: of the host, or a service. */
void page_begin(const struct page *, const char *title);
void page_end(const struct page *);

/* Escaped. */
void page_text(FILE *, const char *);
/* Percent-encoded, for a link. */
void page_link_text(FILE *, const char *);
/* Each fills in buf and returns it. A negative duration is not known. */
const char *page_bytes(char buf[32], uint64_t n);
const char *page_duration(char buf[32], int64_t ns);

/* A cell; class: "ok", "warn", "bad" or "". A number is marked by it unless it is 0. */
void page_cell_text(const struct page *, const char *class, const char *);
void page_cell_number(const struct page *, const char *class, uint64_t);
void page_cell_bytes(const struct page *, uint64_t);
void page_cell_ns(const struct page *, int64_t);

/* A heading and a table of n rows, of which PAGE_ROWS are shown; headings are separated by '|', those of numbers begin with '#'. */
void page_section(const struct page *, const char *title, const char *headings,
    void (*write_cells)(const struct page *, const void *), const void *const rows[], size_t n);
void page_section_of_kind(const struct page *, const char *title, const char *headings, enum report_kind,
    void (*write_cells)(const struct page *, const void *));
/* Of struct tally_entry. */
void page_section_of_reasons(const struct page *, const char *title, const struct field_array *);
/* The newest events: all, or of a service (NULL: all). */
void page_section_of_events(const struct page *, const char *service);
/* The number of rows of a kind; the first PAGE_ROWS of them are put into `rows`. */
size_t page_find_rows(const struct page *, enum report_kind, const void *rows[PAGE_ROWS]);

/* -- page_chart.c -- */

/* The samples of a service, "": of all; NULL: it has none. */
const struct report_history *page_history(const struct page *, const char *service);
/* Connections, data, new ones and round trip, with events as marks; of a service, or NULL: of all. */
void page_charts(const struct page *, const char *service);
/* A cell: data of both ways, small. */
void page_cell_spark(const struct page *, const struct report_history *);

/* -- page_services.c -- */

/* The services that the view shows, in pages. */
void page_services(const struct page *);
