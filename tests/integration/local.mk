# Through two daemons with programs that nobody here wrote. Each script is a TAP test; it can be run by itself too:
#	top_builddir=build tests/integration/check_redis.py
# Those that take longest begin first.
check_INTEGRATION_LONG = \
	tests/integration/check_hostile.py \
	tests/integration/check_middle.py \
	tests/integration/check_last_words.py \
	tests/integration/check_last_words_unix.py
check_LONG += $(check_INTEGRATION_LONG)
check_INTEGRATION = \
	tests/integration/check_failover.py \
	tests/integration/check_hostile_clc.py \
	tests/integration/check_names.py \
	tests/integration/check_open.py \
	tests/integration/check_hostile_llc.py \
	tests/integration/check_limits.py \
	tests/integration/check_log.py \
	tests/integration/check_redis.py \
	tests/integration/check_postgres.py \
	tests/integration/check_http.py \
	tests/integration/check_iperf3.py \
	tests/integration/check_halfclose.py \
	tests/integration/check_unix.py \
	tests/integration/check_local.py \
	tests/integration/check_redis_unix.py \
	tests/integration/check_urgent.py \
	tests/integration/check_reset.py \
	tests/integration/check_slow.py \
	tests/integration/check_lifecycle.py \
	tests/integration/check_upgrade.py \
	tests/integration/check_unit.py \
	tests/integration/check_versions.py \
	tests/integration/check_windows.py \
	tests/integration/check_proxy.py \
	tests/integration/check_tls.py \
	tests/integration/check_tls_path.py \
	tests/integration/check_tls_peers.py \
	tests/integration/check_tls_rotation.py \
	tests/integration/check_failover_tls.py \
	tests/integration/check_upgrade_tls.py \
	tests/integration/check_diagnosis_tls.py \
	tests/integration/check_outages_tls.py \
	tests/integration/check_tls_trust.py \
	tests/integration/check_tls_recheck.py \
	tests/integration/check_open_tls.py tests/integration/check_tls_resume.py \
	tests/integration/check_fallback.py \
	tests/integration/check_outages.py \
	tests/integration/check_when_down.py \
	tests/integration/check_health.py \
	tests/integration/check_circle.py \
	tests/integration/check_accept_proxy.py tests/integration/check_capture.py tests/integration/check_client.py \
	tests/integration/check_dest.py \
	tests/integration/check_original.py tests/integration/check_transparent.py \
	tests/integration/check_connect.py \
	tests/integration/check_events.py \
	tests/integration/check_stuck.py \
	tests/integration/check_ctl.py \
	tests/integration/check_steer.py \
	tests/integration/check_diagnosis.py \
	tests/integration/check_hostile_mpa.py \
	tests/integration/check_hostile_link.py \
	tests/integration/check_hostile_control.py \
	tests/integration/check_metrics.py \
	tests/integration/check_hostile_http.py \
	tests/integration/check_prometheus.py \
	tests/integration/check_confine.py \
	tests/integration/check_option.py \
	tests/integration/check_hostile_option.py \
	tests/integration/check_hostile_open.py \
	tests/integration/check_interfaces.py \
	tests/integration/check_instances.py \
	tests/integration/check_frozen.py \
	tests/integration/check_idle.py \
	tests/integration/check_workers.py \
	tests/integration/check_many.py
check_TAP += $(check_INTEGRATION)
# What is looked at is a browser, or what Wireshark makes of bytes that other scripts send with sanitizers as well; or cases of other
# scripts on UNIX sockets, which with sanitizers have check_unix.py, check_redis_unix.py and check_last_words_unix.py.
check_INTEGRATION_ONCE = tests/integration/check_page.py tests/integration/check_capture.py \
	tests/integration/check_halfclose_unix.py tests/integration/check_slow_unix.py
check_ONCE += $(check_INTEGRATION_ONCE)
# Of documents, which no sanitizer finds fault with.
check_PAGES = tests/integration/check_recipes.py tests/integration/check_tls_page.py tests/integration/check_unix_page.py
check_ONCE += $(check_PAGES)
check_QUICK += \
	tests/integration/check_redis.py \
	tests/integration/check_halfclose.py \
	tests/integration/check_reset.py \
	tests/integration/check_slow.py \
	tests/integration/check_lifecycle.py \
	tests/integration/check_upgrade.py \
	tests/integration/check_unit.py \
	tests/integration/check_fallback.py \
	tests/integration/check_failover.py \
	tests/integration/check_hostile_clc.py \
	tests/integration/check_ctl.py
check_INTEGRATION_SCTP = \
	tests/integration/check_hostile_sctp.py \
	tests/integration/check_hostile_llc_sctp.py \
	tests/integration/check_transport.py \
	tests/integration/check_redis_sctp.py \
	tests/integration/check_hostile_link_sctp.py
# Programs over SCTP, which with sanitizers has check_redis_sctp.py and what is hostile.
check_INTEGRATION_SCTP_ONCE = \
	tests/integration/check_postgres_sctp.py \
	tests/integration/check_http_sctp.py \
	tests/integration/check_iperf3_sctp.py \
	tests/integration/check_capture_sctp.py
check_INTEGRATION_SCTP_LONG = tests/integration/check_last_words_sctp.py
if HAVE_USRSCTP
check_LONG += $(check_INTEGRATION_SCTP_LONG)
check_TAP += $(check_INTEGRATION_SCTP)
check_ONCE += $(check_INTEGRATION_SCTP_ONCE)
endif
EXTRA_DIST += $(check_INTEGRATION) $(check_INTEGRATION_LONG) $(check_INTEGRATION_ONCE) $(check_INTEGRATION_SCTP) \
	$(check_INTEGRATION_SCTP_ONCE) $(check_INTEGRATION_SCTP_LONG) $(check_PAGES) tests/integration/pages.py \
	tests/integration/again.py \
	tests/integration/basics.py tests/integration/procs.py tests/integration/daemons.py tests/integration/sockets.py \
	tests/integration/harness.py tests/integration/tls_files.py \
	tests/integration/manager.py \
	tests/integration/programs.py \
	tests/integration/capture.py tests/integration/proxy_headers.py \
	tests/integration/clc.py \
	tests/integration/hostile.py \
	tests/integration/dns.py tests/integration/local_client.py \
	tests/integration/load.py tests/integration/scrape.py \
	tests/integration/netns.py \
	tests/integration/many.py
