#!/usr/bin/env python3
"""Cases of check_upgrade.py with secure = "required"."""
from again import in_tls

in_tls("check_upgrade.py", "wrk: workers from 3 to 3", "as a firewall may pass no others")
