/* Numbers as people read them. Each fills buf and returns it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HUMAN_MAX 32

/* "0", "999", "1.5K", "64K", "3.2G": powers of 1024. */
char *human_bytes(char buf[HUMAN_MAX], uint64_t bytes);
/* "12ms", "5.2s", "3m12s", "4h05m", "12d03h". */
char *human_duration(char buf[HUMAN_MAX], int64_t ms);
/* "12us", "2.5ms", "1.2s". */
char *human_us(char buf[HUMAN_MAX], int64_t us);
/* "1,234,567". */
char *human_count(char buf[HUMAN_MAX], uint64_t n);
