#!/usr/bin/env python3
"""Cases of check_diagnosis.py with secure = "required"."""
from again import in_tls

in_tls("check_diagnosis.py", "check: each step", "check --bulk")
