#!/usr/bin/env python3
"""The second machine of check_pair.py: executes calls of the first."""
import pair

pair.serve()
