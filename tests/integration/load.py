"""
Traffic that notices what is lost, doubled, exchanged or late: for tests that break things beneath it. `gw` is what has
connect(name), a socket to the service of that name.
"""
import socket
import threading
import time

from harness import PATIENCE, Failure, equal, in_thread, need, pattern, same_bytes, wait_until
from programs import RedisClient, wait_port


class Probe:
    """Counts on one connection in Redis as fast as answers come, a little pause between; any answer that is not the
    next number is a failure. worst() is the longest that an answer took since it was asked last."""

    def __init__(self, gw, key, pause=0.001):
        self.client = RedisClient(gw.connect("redis"))
        self.key, self.pause = key, pause
        self.count = 0
        self.longest = 0.0
        self.asked = None
        self.error = None
        self.ending = False
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.ending:
                self.asked = time.monotonic()
                got = self.client.call("INCR", self.key)
                with self.lock:
                    self.longest = max(self.longest, time.monotonic() - self.asked)
                    self.asked = None
                self.count += 1
                if got != b"%d" % self.count:
                    raise Failure(f"{self.key}: answer {got!r} to number {self.count}")
                time.sleep(self.pause)	# raw: the load's pace
        except Exception as e:
            self.error = e

    def ok(self):
        if self.error:
            raise Failure(f"probe {self.key}: {self.error!r} after {self.count} answers")

    def worst(self):
        """In seconds; counts a wait that is not over."""
        self.ok()
        with self.lock:
            worst = max(self.longest, time.monotonic() - self.asked if self.asked else 0.0)
            self.longest = 0.0
        return worst

    def goes_on(self, n=20):
        """Waits for n more answers."""
        want = self.count + n

        def on():
            self.ok()
            return self.count >= want
        wait_until(on, f"probe {self.key} gets answers", 15)

    def stop(self):
        self.ending = True
        self.thread.join(10 * PATIENCE)
        self.ok()

    def close(self):
        self.client.file.close()
        self.client.sock.close()


def all_go_on(probes, n=20):
    """Waits until each has n more answers than now."""
    want = [(p, p.count + n) for p in probes]

    def on():
        for p in probes:
            p.ok()
        return all(p.count >= count for p, count in want)
    wait_until(on, "every probe gets answers", 15)


class Echo:
    """Sends back what it gets."""

    def __init__(self, t):
        self.host, self.port = t.addr, t.port()
        self.proc = t.spawn([need("socat"), f"TCP-LISTEN:{self.port},bind={self.host},fork,reuseaddr,backlog=100", "EXEC:cat"])
        wait_port(self.proc, self.host, self.port)


class Stream:
    """Sends a pattern that repeats nowhere soon to an echo, as fast as it goes or with a pause behind each piece, and compares
    what comes back."""

    def __init__(self, gw, seed, pause=0):
        self.pause = pause
        self.sock = gw.connect("echo")
        self.sock.settimeout(60 * PATIENCE)
        self.block = pattern(1 << 20, seed)
        self.ending = False
        self.sent = self.got = 0
        self.writer = in_thread(self._write)
        self.reader = in_thread(self._read)

    def _write(self):
        piece = 1 << 16 if self.pause else len(self.block)
        while not self.ending:
            at = self.sent % len(self.block)
            self.sock.sendall(self.block[at:at + piece])
            self.sent += piece
            time.sleep(self.pause)	# raw: the load's pace
        self.sock.shutdown(socket.SHUT_WR)

    def _read(self):
        size = len(self.block)
        while part := self.sock.recv(1 << 18):
            at = self.got % size
            want = self.block[at:at + len(part)]
            want += self.block[:len(part) - len(want)]
            same_bytes(part, want, f"from byte {self.got} on")
            self.got += len(part)

    def has(self, n):
        """Have n bytes come back? What went wrong in between is raised."""
        for task in (self.writer, self.reader):
            if task.error:
                raise task.error
        return self.got >= n

    def stop(self):
        self.ending = True
        self.writer.result(60)
        self.reader.result(60)
        equal(self.got, self.sent, "bytes that came back")
