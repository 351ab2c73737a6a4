#!/usr/bin/env python3
"""Cases of check_outages.py with secure = "required": a fallback to TCP in TLS is reported as any other."""
from again import in_tls

in_tls("check_outages.py", "a link that cannot be made")
