/* SMC messages as one readable line each, for the trace. Everything on the wire is shown except what gives access:
 * rkeys and smcrd's token never appear. Pure. */
#pragma once

#include <stddef.h>

#include "base/span.h"

#define WIRE_DESCRIBE_LEN 1280 /* a buffer of this size holds any line whole */

/* Write a line without newline, cut to cap, always NUL-terminated (cap > 0), also for bytes that do not decode;
 * return its length. */
int wire_describe_clc(struct span in, char *buf, size_t cap);
int wire_describe_llc(struct span in, char *buf, size_t cap);
int wire_describe_cdc(struct span in, char *buf, size_t cap);
