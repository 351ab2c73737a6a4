#!/usr/bin/env python3
"""The second machine of check_afsmc_speed.py: does as it is told."""
import afsmc

afsmc.serve()
