"""For check_local.py, in a process of its own with libsmcrd-local.so: what a program sees of its TCP socket. Prints JSON."""
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys


def described(s):
    """What programs ask of a connected socket."""
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return {
        "peer": list(s.getpeername()), "here": list(s.getsockname())[:1], "port_in_range": 1024 < s.getsockname()[1] < 65536,
        "port_stays": s.getsockname() == s.getsockname(),
        "domain": s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN), "type": s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE),
        "protocol": s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL),
        "error": s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "state": info[0], "info_len": len(info),
        "nodelay": s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
        "keepidle": s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
        "keepalive": s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        "linger": list(struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))),
        "timeout": struct.unpack("qq", s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16))[0],
        "nonblocking": bool(fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK),
        "cloexec": bool(fcntl.fcntl(s, fcntl.F_GETFD) & fcntl.FD_CLOEXEC),
    }


def echoes(s, data=b"ping"):
    s.sendall(data)
    got = b""
    while len(got) < len(data):
        got += s.recv(100)
    return got == data


def errno_of(fn):
    try:
        fn()
    except OSError as e:
        return e.errno
    return 0


def is_unix(s):
    """Whatever the preload says: only UNIX sockets know their peer's process."""
    return struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] > 0


def options(family, at):
    """Options before and behind connect()."""
    s = socket.socket(family)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", 33, 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
    s.connect(at)	# raw: what is tested
    found = {"unix": is_unix(s), **described(s), "again": errno_of(lambda: s.connect(at)), "echo": echoes(s)}	# raw: what is tested
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 88)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)
    found["nodelay_off"] = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    found["keepidle_later"] = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    found["ulp"] = errno_of(lambda: s.setsockopt(socket.IPPROTO_TCP, 31, b"tls"))
    return found


def copies(family, at):
    """dup(), fork(), exec()."""
    s = socket.socket(family)
    s.connect(at)	# raw: what is tested
    with s.dup() as d:
        found = {"unix": is_unix(d), "dup": list(d.getpeername()), "echo": echoes(d)}
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, json.dumps([list(s.getpeername()), echoes(s, b"child")]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    found["fork"] = json.loads(os.read(r, 1000))
    code = f"import socket; s = socket.socket(fileno={s.fileno()}); print(s.family == {int(family)}, s.getpeername())"
    os.set_inheritable(s.fileno(), True)
    found["exec"] = subprocess.run([sys.executable, "-c", code], close_fds=False, stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.strip()
    return found


def waiting(family, at):
    """A non-blocking connect() of a descriptor that is in epoll already, level- and edge-triggered, and poll."""
    found = {}
    for how, flags in (("level", 0), ("edge", select.EPOLLET)):
        s = socket.socket(family)
        s.setblocking(False)
        with select.epoll() as ep:
            ep.register(s, select.EPOLLIN | flags)
            ep.modify(s, select.EPOLLIN | select.EPOLLOUT | flags)
            ep.poll(0)
            rc = s.connect_ex(at)	# raw: what is tested
            out = ep.poll(5)
            found[how] = {"unix": is_unix(s), "rc": rc, "out": out == [(s.fileno(), select.EPOLLOUT)], **described(s)}
            s.send(b"x")
            ep.modify(s, select.EPOLLIN | flags)
            found[how]["in"] = ep.poll(5) == [(s.fileno(), select.EPOLLIN)]
            ep.unregister(s)
        s.close()
    p = select.poll()
    s = socket.socket(family)
    s.setblocking(False)
    p.register(s, select.POLLOUT)
    s.connect_ex(at)	# raw: what is tested
    found["poll"] = p.poll(5000) == [(s.fileno(), select.POLLOUT)]
    return found


def urgent(family, at):
    s = socket.socket(family)
    s.connect(at)	# raw: what is tested
    s.send(b"abc")
    s.send(b"!", socket.MSG_OOB)
    s.send(b"def")
    return {"unix": is_unix(s), "got": s.recv(100).decode()}


def way(family, at):
    s = socket.socket(family)
    s.connect(at)	# raw: what is tested
    return {"unix": is_unix(s), "peer": list(s.getpeername()), "echo": echoes(s)}


def way_of_nobody(family, at):
    os.setgid(65534)
    os.setuid(65534)
    return way(family, at)


def bound(family, at):
    s = socket.socket(family)
    s.bind((at[0], 0))	# raw: what is tested
    here = s.getsockname()
    s.connect(at)	# raw: what is tested
    return {"unix": is_unix(s), "stays": s.getsockname() == here, "echo": echoes(s)}


if __name__ == "__main__":
    name, host, port = sys.argv[1:4]
    print(json.dumps(globals()[name](socket.AF_INET6 if ":" in host else socket.AF_INET, (host, int(port)))))
