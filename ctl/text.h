/* Text for people: numbers, and strings of the daemon without control characters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers as people read them. Each function fills buf and returns it. */
#define HUMAN_MAX 32

/* "0", "999", "1.5K", "64K", "3.2G": powers of 1024. */
char *human_bytes(char buf[HUMAN_MAX], uint64_t bytes);
/* "12ms", "5.2s", "3m12s", "4h05m", "12d03h". */
char *human_duration(char buf[HUMAN_MAX], int64_t ms);
/* "12us", "2.5ms", "1.2s". */
char *human_us(char buf[HUMAN_MAX], int64_t us);
/* "1,234,567". */
char *human_count(char buf[HUMAN_MAX], uint64_t n);

/* The end of a noun behind a number: "s", or "" of one. */
const char *plural(int64_t cnt);

/* Prints text with '?' for each control character (a name may have some), except newlines if these are allowed. */
void print_clean(FILE *, const char *text, bool newlines);
