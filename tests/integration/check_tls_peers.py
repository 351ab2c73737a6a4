#!/usr/bin/env python3
"""TLS with programs that nobody here wrote: openssl(1), gnutls-cli(1), and Wireshark with the keys, by a library that only this test
loads: the product has no key log."""
import contextlib
import secrets
import socket
import subprocess

from capture import Capture
from harness import PATIENCE, SANITIZERS, VALGRIND, Skip, case, check, connect_to, echo, equal, hostport, listener, main, need, outcome, recv_exact, wait_until, works
from tls_files import Authority, psk_file, says, secure_pair

A, B = "spiffe://example.org/gw/a", "spiffe://example.org/gw/b"
NOT_CLC = b"no CLC message, but longer than its header\n"
MARK = b"the marker of a program's data "


def ask(argv, data=NOT_CLC):
    return subprocess.run(argv, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30 * PATIENCE, check=False).stdout


def handshakes(d):
    return d.counters()["tls_handshakes"]


@case("gnutls-cli at the middle: a certificate, none, no ALPN, TLS 1.2, P-256; a PSK, and a wrong one")
def _(t):
    gnutls, ca, key = need("gnutls-cli"), Authority(t), secrets.token_bytes(32)
    a, b = ca.issue("a"), ca.issue("b", "IP:" + t.addr)
    pair = secure_pair(t, echo, a, b, ["*"], [A])
    words = [gnutls, "-p", str(pair.middle["x"]), "--x509cafile", ca.cert, "--no-ca-verification", t.addr]
    mine, alpn = ["--x509certfile", a["cert"], "--x509keyfile", a["key"]], ["--alpn", "smcrd/1"]
    for more, reason in ((alpn, "peer has no certificate"), (mine, "its ALPN lacks smcrd/1"),
                         ([*alpn, *mine, "--priority", "NORMAL:-VERS-ALL:+VERS-TLS1.2"], "peer does not speak TLS 1.3")):
        ask([*words, *more])
        says(pair.b, reason)
    equal(handshakes(pair.b), 0, "handshakes of those")
    for i, more in enumerate(([], ["--priority", "NORMAL:-GROUP-ALL:+GROUP-SECP256R1"], ["--priority", "NORMAL:+CHACHA20-POLY1305"])):
        out = ask([*words, *alpn, *mine, *more])
        wait_until(lambda i=i: handshakes(pair.b) == i + 1, f"a handshake with {more}: {out.decode()}")
        check(b"TLS1.3" in out, out.decode())
    with pair.connect() as c:
        works(c)
    pair = secure_pair(t, echo, psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": key}), ["psk:gw-b"], ["psk:gw-a"])
    words = [gnutls, "-p", str(pair.middle["x"]), *alpn, "--priority", "NORMAL:-VERS-ALL:+VERS-TLS1.3:+ECDHE-PSK:+PSK", t.addr]
    out = ask([*words, "--pskusername", "gw-a>gw-b", "--pskkey", key.hex()])
    wait_until(lambda: handshakes(pair.b) == 1, f"a handshake: {out.decode()}")
    ask([*words, "--pskusername", "gw-a>gw-b", "--pskkey", bytes(32).hex()])
    says(pair.b, "key differs: PSK name 'gw-a'")
    ask([*words, "--pskusername", "gw-b>gw-b", "--pskkey", key.hex()])
    says(pair.b, "PSK name not known")


@case("openssl s_client with a PSK at the middle, and without a key at the port for links, which a live link does not notice")
def _(t):
    openssl, key = need("openssl"), secrets.token_bytes(32)
    pair = secure_pair(t, echo, psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": key}), ["psk:gw-b"], ["psk:gw-a"],
                       egress={"fallback": "refuse"}, ingress={"fallback": "refuse"})
    client = [openssl, "s_client", "-alpn", "smcrd/1", "-tls1_3", "-connect"]
    out = ask([*client, hostport(t.addr, pair.middle["x"]), "-psk_identity", "gw-a>gw-b", "-psk", key.hex()])
    wait_until(lambda: handshakes(pair.b) == 1, f"a handshake: {out.decode()}")
    with pair.connect() as c:
        works(c)
        device = pair.b.ctl("devices")["devices"][0]
        for identity in ("smcrd-L1" + "x" * 24, "gw-a>gw-b"):
            out = ask([*client, hostport(t.addr, device["mpa_port"]), "-psk_identity", identity, "-psk", key.hex()])
            check(b"Cipher is TLS_" not in out and b"MPA ID" not in out, out.decode())
        works(c)


@contextlib.contextmanager
def s_server(t, *args):
    """openssl s_server on a port of its own."""
    with listener(t) as s:
        port = s.getsockname()[1]
    p = t.spawn([need("openssl"), "s_server", "-accept", hostport(t.addr, port), "-quiet", *args])

    def listens():
        with contextlib.suppress(OSError):
            connect_to((t.addr, port), 1).close()
            return True
        return False
    wait_until(listens, "openssl s_server listens")
    yield (t.addr, port)
    p.expect_dead = True
    p.stop()


@case("openssl s_server in place of an egress: TLS 1.2, no ALPN, a name that is not permitted, and no smcrd behind a good handshake")
def _(t):
    ca = Authority(t)
    a, b = ca.issue("a"), ca.issue("b")
    pair = secure_pair(t, echo, a, b, [B], [A])
    for who, more, words in ((b, ["-tls1_2"], "peer does not speak TLS 1.3"), (b, [], "its ALPN lacks smcrd/1"),
                             (ca.issue("x"), ["-alpn", "smcrd/1"], "peer is 'spiffe://example.org/gw/x', not one of peer_names"),
                             (b, ["-alpn", "smcrd/1"], "closed the connection during set-up")):
        with s_server(t, "-cert", who["cert"], "-key", who["key"], "-CAfile", ca.cert, "-Verify", "1", *more) as at:
            pair.relay.to = at
            c = pair.connect()
            c.sendall(MARK)
            if words.startswith("closed"):
                wait_until(lambda: handshakes(pair.a) == 1, "a handshake")
            else:
                equal(outcome(c)[0], "reset", words)
                says(pair.a, words)
    equal(outcome(c)[0], "reset", "when that server is gone")
    check(not pair.relay.has(MARK), "the marker in clear")


KEY_LOG = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fd = -1;
__attribute__((constructor)) static void begin(void)
{
	fd = open(getenv("TEST_KEY_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}
static void keep(const SSL *ssl, const char *line)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s\n", line);
	(void)ssl;
	if (write(fd, text, n) != n)
		abort();
}
SSL_CTX *SSL_CTX_new(const SSL_METHOD *m)
{
	SSL_CTX *(*real)(const SSL_METHOD *) = (SSL_CTX *(*)(const SSL_METHOD *))dlsym(RTLD_NEXT, "SSL_CTX_new");
	SSL_CTX *ctx = real(m);
	if (ctx != NULL)
		SSL_CTX_set_keylog_callback(ctx, keep);
	return ctx;
}
"""


def decrypted(t, capture, keys, port):
    """The bytes of the TLS connections of a port, as Wireshark decrypts them with the keys."""
    words = [need("tshark"), "-r", capture.file, "-n", "-o", f"tls.keylog_file:{keys}", "-d", f"tcp.port=={port},tls"]
    streams = t.run([*words, "-Y", f"tcp.port == {port} and tls.app_data", "-T", "fields", "-e", "tcp.stream"], status=None).split()
    text = bytearray()
    for stream in sorted({int(x) for x in streams}):
        for line in t.run([*words, "-q", "-z", f"follow,tls,raw,{stream}"], status=None).decode().split("\n"):
            with contextlib.suppress(ValueError):
                text += bytes.fromhex(line)
    return bytes(text)


@case("Wireshark with the keys reads CLC, MPA and the program's data inside of what has none of it in clear")
def _(t):
    if SANITIZERS or VALGRIND:
        raise Skip("a library of its own is loaded first")
    ca, source, library, keys = Authority(t), t.path("keys.c"), t.path("keys.so"), t.path("keys")
    with open(source, "w") as f:
        f.write(KEY_LOG)
    t.run([need("cc"), "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"])
    capture = Capture(t)
    pair = secure_pair(t, echo, ca.issue("a"), ca.issue("b"), [B], [A], start=False)
    for d in (pair.b, pair.a):
        d.env = {"LD_PRELOAD": library, "TEST_KEY_LOG": keys}
        d.start()
    with pair.connect() as c:
        c.sendall(MARK)
        recv_exact(c, len(MARK))
    mpa = pair.b.ctl("devices")["devices"][0]["mpa_port"]
    pair.quiet()
    capture.finish()
    middle, link = (decrypted(t, capture, keys, port) for port in (pair.middle["x"], mpa))
    check(middle.count(b"\xe2\xd4\xc3\xd9") >= 6, f"CLC messages: {middle[:300]}")
    check(b"MPA ID Req Frame" in link and b"MPA ID Rep Frame" in link and MARK in link, f"MPA and data: {link[:300]}")
    with open(capture.file, "rb") as f:
        wire = f.read()
    check(b"MPA ID" not in wire and b"\xe2\xd4\xc3\xd9" not in wire, "in clear")


if __name__ == "__main__":
    need("openssl")
    main()
