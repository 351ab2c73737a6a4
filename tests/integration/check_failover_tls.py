#!/usr/bin/env python3
"""Cases of check_failover.py with links in TLS."""
from again import in_tls

in_tls("check_failover.py", "three pairs", "a reset whose data is in flight")
