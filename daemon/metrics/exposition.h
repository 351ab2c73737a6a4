/* The text for Prometheus, made of rows of reports by the table of metrics. Pure but for memory. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/control/snapshot.h"

/* In the format of OpenMetrics 1.0, or in Prometheus' older one, 0.0.4. */
void exposition_write(const struct snapshot *, bool openmetrics, FILE *out);
/* The value of a label: backslash, quotation mark and newline escaped. */
void exposition_label_value(const char *text, FILE *out);
