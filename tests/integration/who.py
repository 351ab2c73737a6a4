"""A server that greets each client with a line of JSON: the address that it sees (peer) and that it has (here); then it echoes."""
import json
import socket
import sys
import threading

if __name__ == "__main__":
    def serve(s):
        with s:
            print("came from", *s.getpeername()[:2], flush=True)
            s.sendall(json.dumps({"peer": s.getpeername()[:2], "here": s.getsockname()[:2]}).encode() + b"\n")
            while data := s.recv(65536):
                s.sendall(data)

    host, port = sys.argv[1], int(sys.argv[2])
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128)
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def start(side, host, port):
    """Starts it where side starts programs."""
    from harness import wait_until
    p = side.spawn([sys.executable, __file__, host, str(port)], "who")
    wait_until(lambda: "ready" in p.log(), "the server listens")
    return p


def ask(s):
    """What the server behind s has said of this connection: (peer, here), each a host and a port."""
    from harness import check, recv_exact
    line = b""
    while not line.endswith(b"\n"):
        line += recv_exact(s, 1)
        check(len(line) < 200, f"greeting {line!r}")
    said = json.loads(line)
    return tuple(said["peer"]), tuple(said["here"])
