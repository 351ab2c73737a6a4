"""
Linux's SCTP by way of Python's sockets: what pysctp.py offers, as far as a kernel lets a program say what goes out. It may
be in UDP (RFC 6951), where sysctl net.sctp.udp_port names the port, or over IP.

    Port           an SCTP port: connect(), accept()
    Association    send(), recv(), shutdown(), abort()

Options, flags and layouts are linux/sctp.h's, by number: Python knows none of them.
"""
import collections
import select
import socket
import struct
import time

from pysctp import FIRST, LAST, UNORDERED, WHOLE, Data
from pyiwarp import SOON, Closed, Timeout

SOL = 132
RTOINFO, INITMSG, NODELAY, ADAPTATION_LAYER, DISABLE_FRAGMENTS, PEER_ADDR_PARAMS, STATUS, RECVRCVINFO = (
    0, 2, 3, 7, 8, 9, 14, 32)
ASSOC_STATS, EVENT, UDP_ENCAPS_PORT = 112, 127, 132
ASSOC_CHANGE, SHUTDOWN_EVENT, ADAPTATION_EVENT = 0x8001, 0x8005, 0x8007
COMM_UP, COMM_LOST, RESTART, SHUTDOWN_COMP, CANT_START = range(5)
SNDINFO, RCVINFO = 2, 3			# control messages
SEND_UNORDERED = 1
NOTIFICATION, EOR = 0x8000, 0x80	# flags of recvmsg()
HB_DISABLE = 2
STORAGE = bytes(128)			# an empty sockaddr_storage
MESSAGE_MAX = 1 << 16


def configure(sock, adaptation, udp):
    """udp: the peer's UDP port, None over IP."""
    sock.setsockopt(SOL, NODELAY, 1)
    sock.setsockopt(SOL, DISABLE_FRAGMENTS, 1)
    sock.setsockopt(SOL, RECVRCVINFO, 1)
    sock.setsockopt(SOL, INITMSG, struct.pack("=HHHH", 1, 1, 4, 1000))
    sock.setsockopt(SOL, RTOINFO, struct.pack("=IIII", 0, 200, 1000, 200))
    sock.setsockopt(SOL, PEER_ADDR_PARAMS, struct.pack("=I128sIHIIIIBx", 0, STORAGE, 0, 0, 0, 0, HB_DISABLE, 0, 0))
    for event in (ASSOC_CHANGE, SHUTDOWN_EVENT, ADAPTATION_EVENT):
        sock.setsockopt(SOL, EVENT, struct.pack("=IHBx", 0, event, 1))
    if adaptation is not None:
        sock.setsockopt(SOL, ADAPTATION_LAYER, struct.pack("=I", adaptation))
    if udp is not None:
        sock.setsockopt(SOL, UDP_ENCAPS_PORT, struct.pack("=I4x128s", 0, STORAGE) + struct.pack(">H6x", udp))


class Port:
    """An SCTP port. udp: the UDP port that all of the kernel's associations have, which is the number of a port that
    listens, too; None: over IP."""

    def __init__(self, host="", port=0, udp=None, adaptation=None, listening=False):
        self.adaptation, self.udp = adaptation, udp
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SOL)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        configure(self.sock, adaptation, udp)
        if listening:
            self.sock.bind((host, port or udp or 0))
            self.sock.listen(16)
        elif host or port:
            self.sock.bind((host, port))
        self.sock.setblocking(False)
        self.at = self.sock.getsockname()

    def close(self):
        """No more associations. The one that connect() made has the socket now."""
        if self.sock is not None:
            self.sock.close()

    def connect(self, at, port=None, timeout=SOON):
        """The Association with an SCTP port, by default of the same number as the UDP port in `at`."""
        sock, self.sock = self.sock, None
        if self.udp is not None:
            configure(sock, self.adaptation, at[1])
        try:
            sock.connect((at[0], at[1] if port is None else port))
        except BlockingIOError:
            pass
        if not select.select([], [sock], [], timeout)[1]:
            raise Timeout("no association in time")
        if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise Closed(True, f"connect: errno {error}")
        return Association(sock)

    def accept(self, timeout=SOON):
        if not select.select([self.sock], [], [], timeout)[0]:
            raise Timeout("no association")
        sock, _ = self.sock.accept()
        sock.setblocking(False)
        return Association(sock)


class Association:
    """As pysctp.py's. The kernel answers for it all the time; what it says is heard when the test asks for something."""

    def __init__(self, sock):
        self.sock = sock
        self.messages = collections.deque()
        self.sent = 0
        self.part = None		# a message whose end has not come
        self.how = None			# it ended so: "closed", "reset"
        self.peer_ended = False		# it said SHUTDOWN
        self.peer_adaptation = None
        # Its indication comes right behind the news that the association is there, if at all.
        while self.peer_adaptation is None and not self.messages and not self.how and self._hear(0):
            pass

    @property
    def resent(self):
        return struct.unpack_from("=Q", self.sock.getsockopt(SOL, ASSOC_STATS, 264), 136 + 5 * 8)[0]

    def send(self, payload, ppid, sid=0, flags=WHOLE, timeout=SOON):
        """A message; its number, from 0. It is whole, whatever the flags say."""
        info = struct.pack("=HHIII", sid, SEND_UNORDERED if flags & UNORDERED else 0, socket.htonl(ppid), 0, 0)
        end = time.monotonic() + timeout
        while True:
            try:
                self.sock.sendmsg([payload], [(SOL, SNDINFO, info)], socket.MSG_NOSIGNAL)
                break
            except BlockingIOError:
                if not select.select([], [self.sock], [], max(0, end - time.monotonic()))[1]:
                    raise Timeout("no room to send in time") from None
            except OSError as e:
                while not self.how and self._hear(0):
                    pass
                raise Closed(self.how == "reset", e.strerror) from None
        self.sent += 1
        return self.sent - 1

    def recv(self, timeout=SOON):
        """The next message as a Data, in the order in which they come. Closed when no more will."""
        end = time.monotonic() + timeout
        while not self.messages:
            if self.how or self.peer_ended:
                raise Closed(self.how == "reset", self.how or "SHUTDOWN")
            if not self._hear(end - time.monotonic()):
                raise Timeout("no message in time")
        return self.messages.popleft()

    def shutdown(self):
        """Ends it in order, behind what is to be sent and acknowledged; wait_end() waits for that."""
        if not self.how:
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass	# over already

    def abort(self):
        if not self.how:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
            self._finish("reset")

    def wait_end(self, timeout=SOON):
        """How it ended."""
        end = time.monotonic() + timeout
        while not self.how:
            if not self._hear(end - time.monotonic()):
                raise Timeout("no end of the association in time")
        return self.how

    def _finish(self, how):
        self.how = how
        self.sock.close()

    def _hear(self, timeout):
        """One thing that the socket has to say. False: nothing in time."""
        if not select.select([self.sock], [], [], max(0, timeout))[0]:
            return False
        try:
            data, control, flags, _ = self.sock.recvmsg(MESSAGE_MAX, 256)
        except BlockingIOError:
            return False
        except OSError:
            self._finish("reset")
            return True
        if flags & NOTIFICATION:
            self._notified(data)
        elif data:
            self._came(data, control, flags)
        else:
            self._finish("closed")
        return True

    def _notified(self, event):
        (kind,) = struct.unpack_from("=H", event)
        if kind == SHUTDOWN_EVENT:
            self.peer_ended = True
        elif kind == ADAPTATION_EVENT:
            (self.peer_adaptation,) = struct.unpack_from("=I", event, 8)
        elif kind == ASSOC_CHANGE:
            (state,) = struct.unpack_from("=H", event, 8)
            if state != COMM_UP:
                self._finish("closed" if state == SHUTDOWN_COMP else "reset")

    def _came(self, data, control, flags):
        """A part of a message, of which there is one unless the peer fragments."""
        info = next(value for level, kind, value in control if (level, kind) == (SOL, RCVINFO))
        sid, ssn, how, ppid, tsn = struct.unpack_from("=HHHxxII", info)
        self.messages.append(Data(tsn, sid, ssn, socket.ntohl(ppid), data, (UNORDERED if how & SEND_UNORDERED else 0) |
                                  (0 if self.part else FIRST) | (LAST if flags & EOR else 0)))
        self.part = not flags & EOR
