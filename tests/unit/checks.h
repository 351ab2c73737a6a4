/* check, without its marks: with each assertion that holds it writes into a file where the test is, in case that it
 * crashes, and some million of them were most of the tests' time. One that fails says by itself where it is. */
#pragma once

#include <check.h>

#define _mark_point(file, line) ((void)0)
