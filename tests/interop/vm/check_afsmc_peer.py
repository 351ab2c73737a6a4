#!/usr/bin/env python3
"""The second machine of check_afsmc.py: executes calls of the first."""
import afsmc

afsmc.serve()
