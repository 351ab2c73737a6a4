/* SMC messages as one line of text each, for the trace, without rkeys and smcrd's token, which grant access. Pure. */
#pragma once

#include "base/span.h"

#define WIRE_DESCRIBE_LEN 1280 /* holds the longest line */

/* Write a line without newline, truncated to cap (> 0), NUL-terminated, also for malformed bytes. Return its length. */
int wire_describe_clc(struct span in, char *buf, size_t cap);
int wire_describe_llc(struct span in, char *buf, size_t cap);
int wire_describe_cdc(struct span in, char *buf, size_t cap);
