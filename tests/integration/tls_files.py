"""Certificates by openssl(1), PSK files, and a relay between two daemons that records and changes bytes."""
import os
import secrets
import socket
import threading
import time

from harness import connect_to, hostport, listener, logs, need, need_built_with, pair_to, wait_until

COUNTERS = {
    "tls_not_spoken": ("our ClientHello", "does not speak TLS", "not TLS, refused", "ALPN"),
    "tls_certificates_refused": ("certificate of ", "no certificate", "our certificate is", "our certificate has", "CA of our certificate"),
    "tls_names_refused": ("peer_names",),
    "tls_psks_refused": ("PSK", "the two keys differ"),
    "tls_no_suite": ("cipher suite",),
    "tls_streams_broken": ("bad record", "close_notify", "too many TLS messages"),
}


class Authority:
    """A CA in a directory of the case."""

    def __init__(self, t, name="ca"):
        need_built_with("OpenSSL", "SSL_CTX_new")
        self.t = t
        self.dir = t.path(f"{name}.{t.count()}")
        self.openssl = need("openssl")
        os.mkdir(self.dir)
        self.cert, self.crl = self.at("ca.pem"), self.at("crl.pem")
        self.key = self.new_key("ca")
        self.call("req", "-x509", "-key", self.key, "-subj", f"/CN={name}", "-days", "365", "-out", self.cert,
                  "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        with open(self.at("ca.conf"), "w") as f:
            f.write(f"[ca]\ndefault_ca=x\n[x]\ndatabase={self.at('index')}\ndefault_md=sha256\ndefault_crl_days=30\nserial={self.at('serial')}\n[any]\ncommonName=supplied\n")
        open(self.at("index"), "w").close()

    def at(self, name):
        return os.path.join(self.dir, name)

    def call(self, *args):
        return self.t.run([self.openssl, *args])

    def new_key(self, name, kind=("EC", "ec_paramgen_curve:P-256")):
        self.call("genpkey", "-algorithm", kind[0], "-pkeyopt", kind[1], "-out", self.at(f"{name}.key"))
        return self.at(f"{name}.key")

    def issue(self, name, san=None, days=90, usage="clientAuth,serverAuth", key=("EC", "ec_paramgen_curve:P-256"), valid=None):
        """The `tls` settings of a daemon with a certificate of this CA. valid: seconds from now to its start and end, in the place of days."""
        key, request, cert, ext = self.new_key(name, key), self.at(f"{name}.csr"), self.at(f"{name}.pem"), self.at(f"{name}.ext")
        with open(ext, "w") as f:
            f.write(f"subjectAltName={san or f'URI:spiffe://example.org/gw/{name}'}\nextendedKeyUsage={usage}\n")
        self.call("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        if valid:
            start, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + s)) for s in valid)
            self.call("ca", "-batch", "-config", self.at("ca.conf"), "-keyfile", self.key, "-cert", self.cert, "-in", request, "-out", cert,
                      "-outdir", self.dir, "-policy", "any", "-create_serial", "-notext", "-extfile", ext, "-startdate", start, "-enddate", end)
            return {"cert": cert, "key": key, "ca": self.cert}
        self.call("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-days", str(days), "-extfile", ext,
                  "-out", cert, "-set_serial", str(secrets.randbits(60)))
        return {"cert": cert, "key": key, "ca": self.cert}

    def revoke(self, *certs, valid_s=86400):
        """Makes the CRL, with these."""
        for cert in certs:
            self.call("ca", "-config", self.at("ca.conf"), "-keyfile", self.key, "-cert", self.cert, "-revoke", cert)
        self.call("ca", "-config", self.at("ca.conf"), "-keyfile", self.key, "-cert", self.cert, "-gencrl", "-crlsec", str(valid_s),
                  "-out", self.crl)
        return self.crl


def psk_file(t, own, keys, mode=0o600):
    """The `tls` settings of a daemon of this name with a file of PSKs: peer -> bytes."""
    need_built_with("OpenSSL", "SSL_CTX_new")
    path = t.path(f"psk.{t.count()}")
    with open(path, "w") as f:
        f.write("# of a test\n" + "".join(f"{peer}:{key.hex()}\n" for peer, key in keys.items()))
    os.chmod(path, mode)
    return {"name": own, "psk": path}


class Relay:
    """Forwards connections to `to`, which may be set later; keeps all bytes. change(direction, data) -> data, or None: cuts the
    connection by FIN both ways."""

    def __init__(self, t, to=None, change=None):
        self.to, self.change = to, change
        self.seen = {"up": bytearray(), "down": bytearray()}
        self.sock = listener(t)
        self.at = self.sock.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
                up = connect_to(self.to, 20)
            except OSError:
                return
            for way, a, b in (("up", s, up), ("down", up, s)):
                threading.Thread(target=self._move, args=(way, a, b), daemon=True).start()

    def _move(self, way, a, b):
        try:
            while data := a.recv(65536):
                self.seen[way] += data
                data = self.change(way, data) if self.change else data
                if data is None:
                    for s in (a, b):
                        s.shutdown(socket.SHUT_WR)
                    return
                try:
                    b.sendall(data)
                except OSError:		# it has ended: what it has sent before goes the other way
                    return
            b.shutdown(socket.SHUT_WR)
        except OSError:
            try:
                b.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def has(self, text):
        return text in self.seen["up"] or text in self.seen["down"]


def says(d, words):
    """A failure of TLS in words of its cause is in its counter as well."""
    logs(d, words)
    for counter, causes in COUNTERS.items():
        if any(cause in words for cause in causes):
            wait_until(lambda c=counter: d.counters()[c] > 0, f"{words!r} of daemon {d.name} in {counter}")


def secure_pair(t, serve, a_tls, b_tls, a_names=None, b_names=("*",), secure="required", b_secure=None, relay=None, change=None, links=True, opens=False, **kw):
    """A pair with TLS between, its CLC connections by a relay: pair.relay. links: over soft iWARP on TCP; otherwise data goes by TCP.
    opens: connections open over a link; otherwise each has its CLC connection."""
    relay = relay or Relay(t, change=change)
    ingress = {"secure": secure, "to": hostport(*relay.at), **kw.pop("ingress", {})}
    egress = {"secure": b_secure or secure, **kw.pop("egress", {})}
    if a_names and secure != "off":
        ingress["peer_names"] = list(a_names)
    if b_names and egress["secure"] != "off":
        egress["peer_names"] = list(b_names)
    start = kw.pop("start", True)
    for name in ("a", "b"):
        conf = kw.setdefault(name, {})
        conf["smcr"] = {"open_over_link": opens, **conf.get("smcr", {})}
    if not links:	# without a kind of RTR message in common
        for conf, rtr in ((kw.setdefault("a", {}), "send"), (kw.setdefault("b", {}), "read")):
            conf["devices"] = [{"type": "siw", "address": t.addr, "rtr": [rtr]}]
    pair = pair_to(t, serve, ingress=ingress, egress=egress, a={"tls": a_tls, **kw.pop("a", {})}, b={"tls": b_tls, **kw.pop("b", {})},
                   start=False, **kw)
    relay.to = (pair.host, pair.middle["x"])
    pair.relay = relay
    if start:
        pair.b.start()
        pair.a.start()
    return pair
