/* Texts with members of a JSON object in them. A template is a constant of ours; JSON is never read as one.
 *   {path}          a string; the strings of an array with commas between
 *   {path:kind}     a number, see below; {a+b:kind} a sum. An array is as many as its items, a missing member is 0, one below 0 is "-"
 *   {path:kindW}    in W columns, to the right; to the left with -W
 *   [if?text]       text if the condition holds
 *   [if?a|if?b|c]   the first alternative whose condition holds; the last one may have none
 *   [path*text]     text for each item of an array, or once for an object; paths in text begin there
 *
 * A path is the names of members with dots between. A condition is one path or several with commas, of which one must be true,
 * above 0, or not empty; path=value compares, path~value with a beginning, and ! before it is its opposite.
 * Kinds: n number, b bytes, B bytes with the unit's name, t milliseconds, u microseconds, q number of a queue pair, s "s" of a
 * plural, T time of day and D date and time of microseconds since 1970. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* As it is: for what is not text on a terminal, or made clean later. */
void template_write(FILE *, const json_t *, const char *template);
/* Without control characters, newlines excepted. */
void template_print(FILE *, const json_t *, const char *template);
/* A text to be freed; NULL when memory is out. */
char *template_str(const json_t *, const char *template);
bool template_holds(const json_t *, const char *condition);
/* The member that the template begins with is not there. */
bool template_is_missing(const json_t *, const char *template);
