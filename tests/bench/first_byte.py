#!/usr/bin/env python3
"""
first_byte.py HOST PORT SECONDS: PINGs to a Redis server, each on a new connection, one after the other. Prints a JSON list of the
milliseconds from connect() to the first byte of each answer, without the first connections, which may open in another way.
"""
import json
import socket
import sys
import time

WARM = 3


def once(at):
    start = time.perf_counter()
    with socket.socket() as s:
        s.settimeout(20)	# raw: a measurement of a busy machine is worth nothing
        s.connect(at)	# raw: what is measured
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(b"PING\r\n")
        if not s.recv(1):
            sys.exit("first_byte: a connection ended without an answer")
        return (time.perf_counter() - start) * 1000


def main():
    at, until = (sys.argv[1], int(sys.argv[2])), time.monotonic() + float(sys.argv[3])
    took = []
    while len(took) < WARM + 2 or time.monotonic() < until:
        took.append(once(at))
        time.sleep(0.01)	# raw: the end of one connection does not delay the next one
    print(json.dumps(took[WARM:]))


main()
