# What is counted, over HTTP: collected in the main thread, served by a thread of its own.
daemon_libsmcrd_a_SOURCES += \
	daemon/metrics/metrics.c daemon/metrics/metrics.h \
	daemon/metrics/http.c daemon/metrics/http.h \
	daemon/metrics/web.c daemon/metrics/web.h \
	daemon/metrics/metric_table.c daemon/metrics/metric_table.h \
	daemon/metrics/exposition.c daemon/metrics/exposition.h \
	daemon/metrics/page.c daemon/metrics/page.h \
	daemon/metrics/page_parts.c daemon/metrics/page_parts.h \
	daemon/metrics/page_chart.c \
	daemon/metrics/page_services.c

check_UNIT += \
	tests/unit/daemon/metrics/check_exposition \
	tests/unit/daemon/metrics/check_web \
	tests/unit/daemon/metrics/check_page \
	tests/unit/daemon/metrics/check_metrics_http
tests_unit_daemon_metrics_check_exposition_SOURCES = tests/unit/daemon/metrics/check_exposition.c $(FAKE_WORKER) $(FAKE_LOOP)
tests_unit_daemon_metrics_check_page_SOURCES = tests/unit/daemon/metrics/check_page.c $(FAKE_WORKER) $(FAKE_LOOP)
