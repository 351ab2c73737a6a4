"""
What the kernel says of its own SMC, by netlink: the generic family SMC_GEN_NETLINK (linux/smc.h: link groups, links, counts,
enterprise ids), SMC_PNETID (which device is on which network), and sock_diag of AF_SMC (linux/smc_diag.h). smc-tools show
the same, but are not packaged for every machine.
"""
import errno
import os
import socket
import struct

AF_SMC = 43
NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16
SOCK_DIAG_BY_FAMILY = 20
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
CTRL, GETFAMILY = 0x10, 3
CONNINFO, LGRINFO, FALLBACK = 1, 2, 5
MODES = {0: "smcr", 1: "tcp", 2: "smcd"}
# Commands of SMC_GEN_NETLINK
GET_LGR_SMCR, GET_LINK_SMCR, GET_STATS, GET_FBACK_STATS, ADD_UEID, FLUSH_UEID = 2, 3, 7, 8, 10, 12
PNETID_ADD, PNETID_FLUSH = 2, 4


def _attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def _attrs(data):
    """Attributes by number, as bytes."""
    out, at = {}, 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        out[kind & 0x3fff] = data[at + 4:at + size]
        at += (size + 3) & ~3
    return out


def _u(data):
    return int.from_bytes(data or b"", "little")


def _text(data):
    return (data or b"").split(b"\0")[0].decode(errors="replace").strip()


def _ask(protocol, kind, flags, body):
    """Sends a request; the bodies of all that comes back."""
    out = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as s:
        s.settimeout(20)	# raw: the kernel answers at once, or never
        s.send(struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, 1, 0) + body)
        while True:
            data, at = s.recv(1 << 18), 0
            while at + 16 <= len(data):
                size, got = struct.unpack_from("=IH", data, at)
                part = data[at + 16:at + size]
                at += (size + 3) & ~3
                if got == DONE:
                    return out
                if got == ERROR:
                    code = -struct.unpack_from("=i", part)[0]
                    if code:
                        raise OSError(code, os.strerror(code))
                    return out
                out.append(part)
                if not flags & (DUMP | ACK):
                    return out


def _family(name):
    answer = _ask(NETLINK_GENERIC, CTRL, 0, struct.pack("=BBH", GETFAMILY, 1, 0) + _attr(2, name.encode() + b"\0"))
    return struct.unpack("=H", _attrs(answer[0][4:])[1])[0]


def _smc(command, flags, attrs=b"", family="SMC_GEN_NETLINK"):
    return _ask(NETLINK_GENERIC, _family(family), flags, struct.pack("=BBH", command, 1, 0) + attrs)


def _dump(command, nest):
    """The nested attribute of each message of a dump."""
    out = [_attrs(x[4:]).get(nest) for x in _smc(command, DUMP)]
    return [_attrs(x) for x in out if x is not None]


def add_ueid(ueid):
    _smc(ADD_UEID, ACK, _attr(1, ueid.ljust(32).encode() + b"\0"))


def flush_ueids():
    _smc(FLUSH_UEID, ACK)


def add_pnet(pnet, device=None, netdev=None):
    """A network that a device, or an interface, is on."""
    where = _attr(2, netdev.encode() + b"\0") if netdev else _attr(3, device.encode() + b"\0") + _attr(4, b"\1")
    _smc(PNETID_ADD, ACK, _attr(1, pnet.encode() + b"\0") + where, "SMC_PNETID")


def flush_pnets():
    _smc(PNETID_FLUSH, ACK, family="SMC_PNETID")


def groups():
    """Link groups of SMC-R."""
    out = []
    for x in _dump(GET_LGR_SMCR, 2):
        common, v2 = _attrs(x.get(7, b"")), _attrs(x.get(8, b""))
        out.append({"id": _u(x[1]), "role": {0: "client", 1: "server"}[_u(x[2])],
                    "type": {1: "single", 2: "symmetric", 3: "asymmetric peer", 4: "asymmetric local"}.get(_u(x[3]), "none"),
                    "pnet": _text(x.get(4)), "connections": _u(x.get(6)), "version": _u(common.get(0)) or 1,
                    "release": _u(common.get(1)), "peer_os": _u(common.get(2)), "eid": _text(common.get(3)),
                    "peer_host": _text(common.get(4)), "direct": _u(v2.get(1)), "max_conns": _u(v2.get(2)),
                    "max_links": _u(v2.get(3))})
    return out


def links():
    """Links of all link groups."""
    return [{"device": _text(x.get(2)), "gid": _text(x.get(4)), "peer_gid": _text(x.get(5)), "connections": _u(x.get(6)),
             "uid": _u(x.get(8)), "peer_uid": _u(x.get(9)),
             "state": {1: "inactive", 2: "activating", 3: "active"}.get(_u(x.get(10)), str(_u(x.get(10))))}
            for x in _dump(GET_LINK_SMCR, 3)]


def counts():
    """Connections that became SMC-R since the module was loaded, by role and version; and those that did not, by reason."""
    out = {"client 1": 0, "client 2": 0, "server 1": 0, "server 2": 0, "handshake errors": 0, "fallbacks": {}}
    for x in _dump(GET_STATS, 7):
        tech = _attrs(x.get(2, b""))
        for name, number in (("client 1", 7), ("client 2", 8), ("server 1", 9), ("server 2", 10)):
            out[name] = _u(tech.get(number))
        out["handshake errors"] = _u(x.get(3)) + _u(x.get(4))
    for x in _dump(GET_FBACK_STATS, 8):
        if code := _u(x.get(4)):
            out["fallbacks"][f"{code:08x} {'server' if _u(x.get(1)) else 'client'}"] = _u(x.get(5))
    return out


def _sockets(*wanted):
    """Of each AF_SMC socket: the fixed part of what is said of it, and the attributes."""
    request = struct.pack("=BxxB", AF_SMC, sum(1 << kind - 1 for kind in wanted)) + bytes(48)
    return [(x, _attrs(x[64:])) for x in _ask(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, DUMP, request)]


def sockets():
    """AF_SMC sockets by inode: mode, with the reasons of a fallback (ours, the peer's), and the link."""
    out = {}
    for x, attrs in _sockets(LGRINFO):
        reason, peer = struct.unpack("=II", attrs.get(FALLBACK, bytes(8)))
        mode = MODES.get(x[2], str(x[2]))
        info = attrs.get(LGRINFO, b"")
        out[struct.unpack_from("=Q", x, 56)[0]] = {
            "state": x[1], "mode": mode if info or mode != "smcr" else "none", "reason": f"{reason:08x}", "peer": f"{peer:08x}",
            "device": _text(info[1:65]), "link": info[0] if info else None}
    return out


# struct smc_diag_conninfo: "wrap:count" of each cursor, in this order; fin is what is known to have arrived
CURSORS = ("rx_prod", "rx_cons", "tx_prod", "tx_cons"), ("tx_prep", "tx_sent", "tx_fin")


def connections():
    """Connections of AF_SMC sockets that are SMC-R: sizes, cursors, flags as sent and received. The kernel's tokens are those that
    its peer uses in CDC messages to it."""
    def cursors(names, info, at):
        return {name: "{}:{}".format(*struct.unpack_from("=HI", info, at + 8 * i + 2)) for i, name in enumerate(names)}
    out = []
    for x, attrs in _sockets(CONNINFO, LGRINFO):
        info, group = attrs.get(CONNINFO), attrs.get(LGRINFO)
        if not info or not group:
            continue
        token, sndbuf, rmbe, peer_rmbe = struct.unpack_from("=IIII", info)
        out.append({"token": f"{token:08x}", "state": x[1], "device": _text(group[1:65]), "sndbuf": sndbuf, "rmbe": rmbe,
                    "peer_rmbe": peer_rmbe, **cursors(CURSORS[0], info, 16), "flags": info[48:52].hex(),
                    **cursors(CURSORS[1], info, 52)})
    return out


def word(sock):
    """Of one socket: "smcr", or "tcp", with the fallback's reasons. A list of many can lack one while others are closed."""
    for _ in range(5):
        if x := sockets().get(os.fstat(sock.fileno()).st_ino):
            break
    else:
        raise OSError(errno.ENOENT, "the kernel has no such AF_SMC socket")
    return x["mode"] if x["mode"] == "smcr" else f"{x['mode']} {x['reason']} {x['peer']}"
