#!/usr/bin/env python3
"""The second machine of check_afsmc.py: executes calls of the first."""
import socket

import afsmc

socket.sethostname(afsmc.HOSTILE_NAME)		# before the module smc is loaded, which keeps it
afsmc.serve()
