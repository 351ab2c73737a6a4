# Examples for Prometheus and Grafana, and what is tested of them (tests/integration/check_prometheus.py).
dist_examples_DATA += prometheus/smcrd-alerts.yml prometheus/grafana-dashboard.json
EXTRA_DIST += prometheus/alerts-test.yml
