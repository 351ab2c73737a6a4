#!/usr/bin/env python3
"""Devices by interface: they come and go with interfaces and addresses, and their ports go down and up."""
import socket
import subprocess

from netns import ADDR_A, ADDR_B, Net, enter

enter()

from harness import (SMCRCTL, Daemon, Server, case, check, connect_to, echo, equal, hostport, logs, main,	# noqa: E402
                     need_built_with, recv_exact, same_bytes, wait_until)
from programs import Redis, RedisClient							# noqa: E402


def devices(d):
    """name -> (port, address)."""
    return {x["name"]: (x["port"], x["gid"].replace("::ffff:", "")) for x in d.ctl("devices")["devices"]}


def wait_devices(d, want):
    wait_until(lambda: devices(d) == want, f"daemon {d.name} has devices {want}")


def egress(to=("127.0.0.1", 9)):
    return [{"name": "x", "listen": f"{ADDR_B}:12000", "to": hostport(*to)}]


@case("ports follow the interface and the carrier, at both ends", one_worker="each worker has the devices")
def _(t):
    net = Net(t)
    a = Daemon(t, "a", {"devices": net.devices("a"), "log_level": "info"})
    b = Daemon(t, "b", {"devices": net.devices("b")}, wrap=net.b.wrap())
    up = {"a1": ("up", "10.77.1.1"), "a2": ("up", "10.77.2.1")}
    wait_devices(a, up)
    wait_devices(b, {"b1": ("up", "10.77.1.2"), "b2": ("up", "10.77.2.2")})
    equal(a.status()["devices_up"], 2, "devices that are up")
    net.down("a", 1)
    wait_devices(a, dict(up, a1=("down", "10.77.1.1")))
    wait_devices(b, {"b1": ("down", "10.77.1.2"), "b2": ("up", "10.77.2.2")})
    equal(a.status()["devices_up"], 1, "devices that are up")
    net.up("a", 1)
    wait_devices(a, up)
    logs(a, "device port down: device=a1 address=10.77.1.1")
    logs(a, "device port up: device=a1 address=10.77.1.1")


def port_is_dropped(t, transport, words):
    net = Net(t)
    device = {"type": "siw", "transport": transport}
    a = Daemon(t, "a", {"devices": [dict(device, interface="a2", connect_timeout="300ms")], "workers": 1,
                        "ingress": [{"name": "x", "listen": "127.0.0.1:12001", "to": "10.77.1.2:12000"}]})
    b = Daemon(t, "b", {"devices": [dict(device, interface="b2")], "workers": 1,
                        "egress": [{"name": "x", "listen": "10.77.1.2:12000", "to": "10.77.1.1:12002"}]}, wrap=net.b.wrap())
    server = Server(t, echo, "10.77.1.1", 12002)
    wait_devices(b, {"b2": ("up", "10.77.2.2")})
    port = b.ctl("devices")["devices"][0]["mpa_port"]
    net.silence(2, "a")
    with connect_to(("127.0.0.1", 12001), 20) as c:
        c.sendall(b"hello")
        same_bytes(recv_exact(c, 5), b"hello", "echo on TCP")
        reason = a.connections()[0]["reason"]
        equal((reason["detail"], reason["mpa_peer"]), (words, f"10.77.2.2:{port}"), "reason")
        over = [d.connections()[0]["reason"]["transport"] for d in (a, b)]
        equal(over, [b.ctl("devices")["devices"][0]["transport"]] * 2, "what it was to go over, at both ends")
    logs(a, f'mpa=10.77.2.2:{port} reason="{words}"')
    logs(b, 'reason="declined by the peer: queue pair could not be made ready"')
    server.ok()


@case("a firewall drops the MPA port: the fallback names it, at the default log level")
def _(t):
    port_is_dropped(t, "tcp", "the peer's MPA port does not answer")


@case("a firewall drops the SCTP port: the fallback names it, at the default log level")
def _(t):
    need_built_with("libusrsctp", "usrsctp_init")
    port_is_dropped(t, "sctp", "the peer's SCTP port does not answer")


@case("addresses come and go; an address that returns in time keeps its device")
def _(t):
    net = Net(t)
    a = Daemon(t, "a", {"devices": net.devices("a")})
    wait_devices(a, {"a1": ("up", "10.77.1.1"), "a2": ("up", "10.77.2.1")})
    port = next(d["mpa_port"] for d in a.ctl("devices")["devices"] if d["name"] == "a1")
    net.ip("a", "addr add 10.77.61.3/24 dev a1", "addr add fd77::1/64 dev a1 nodad")
    more = {"a1": ("up", "10.77.1.1"), "a2": ("up", "10.77.2.1"), "a1:2": ("up", "10.77.61.3"), "a1:3": ("up", "fd77::1")}
    wait_devices(a, more)
    net.ip("a", "addr del 10.77.61.3/24 dev a1")
    wait_devices(a, dict(more, **{"a1:2": ("down", "10.77.61.3")}))
    net.ip("a", "addr add 10.77.61.3/24 dev a1", "addr del 10.77.1.1/24 dev a1")
    wait_devices(a, dict(more, a1=("down", "10.77.1.1")))
    net.ip("a", "addr add 10.77.1.1/24 dev a1")
    wait_devices(a, more)
    equal(next(d["mpa_port"] for d in a.ctl("devices")["devices"] if d["name"] == "a1"), port, "its MPA port")
    net.ip("a", "addr del fd77::1/64 dev a1")
    gone = {k: v for k, v in more.items() if k != "a1:3"}
    wait_until(lambda: devices(a) == gone, "the device of an address that is gone is gone", 15)


@case("an address and an interface missing at start are awaited; also after a reload")
def _(t):
    net = Net(t, 1)
    conf = {"devices": [{"type": "siw", "interface": "a9"}, {"type": "siw", "address": "10.77.8.1", "name": "later"},
                        {"type": "siw", "interface": "a1", "name": "first"}]}
    a = Daemon(t, "a", conf)
    wait_devices(a, {"first": ("up", "10.77.1.1")})
    logs(a, "device later at 10.77.8.1 is not there")
    net.ip("a", "addr add 10.77.8.1/24 dev a1")
    have = {"first": ("up", "10.77.1.1"), "later": ("up", "10.77.8.1")}
    wait_devices(a, have)
    net.ip("a", "link add a9 type veth peer name b9", "addr add 10.77.9.1/24 dev a9")
    have["a9"] = ("down", "10.77.9.1")
    wait_devices(a, have)
    net.ip("a", "link set a9 up", "link set b9 up")
    have["a9"] = ("up", "10.77.9.1")
    wait_devices(a, have)
    conf["devices"].append({"type": "siw", "address": "10.77.7.1"})
    a.write_conf(conf)
    out = a.ctl_text("reload")
    check("10.77.7.1 is not there" in out, f"the reload says: {out}")
    wait_devices(a, have)
    net.ip("a", "addr add 10.77.7.1/24 dev a9")
    have["siw3"] = ("up", "10.77.7.1")
    wait_devices(a, have)
    net.ip("a", "link del a9")
    wait_devices(a, dict(have, a9=("down", "10.77.9.1"), siw3=("down", "10.77.7.1")))


@case("smcrctl retry opens a failed device at once, and reports if there is none",
      one_worker="each worker has the devices")
def _(t):
    net = Net(t, 1)
    taken = socket.create_server(("10.77.1.1", 7480))
    t.later(taken.close)
    a = Daemon(t, "a", {"devices": [{"type": "siw", "interface": "a1", "mpa_ports": "7480-7480"}]})
    wait_until(lambda: "device a1 at 10.77.1.1 is not there" in a.log(), "the log says what is missing")
    retry = [SMCRCTL, "--socket", a.control, "retry"]
    check("missing devices that are looked for now: 1" in t.run(retry).decode(), "smcrctl says so")	# without effect
    taken.close()

    def is_there():		# the next automatic attempt is in 10 s, and the requested one may still fail
        t.run(retry, status=None)
        return devices(a) == {"a1": ("up", "10.77.1.1")}
    wait_until(is_there, "the device is there", 5)
    out = t.run(retry, status=1, stderr=subprocess.STDOUT).decode()
    check("nothing to retry: nothing waits for another try, and neither device nor name is missing" in out, out)


@case("interface \"*\": all that are up, except loopback")
def _(t):
    net = Net(t)
    net.ip("a", "link add idle type veth peer name off", "addr add 10.77.50.1/24 dev idle")
    a = Daemon(t, "a", {"devices": [{"type": "siw", "interface": "*"}, {"type": "siw", "interface": "a2", "name": "two"}]})
    have = {"a1": ("up", "10.77.1.1"), "two": ("up", "10.77.2.1")}
    wait_devices(a, have)
    net.ip("a", "link set idle up", "link set off up")
    have["idle"] = ("up", "10.77.50.1")
    wait_devices(a, have)
    net.ip("a", "link set off down")
    wait_devices(a, dict(have, idle=("down", "10.77.50.1")))
    net.ip("a", "link del idle")


@case("traffic over a device that came late")
def _(t):
    net = Net(t, 1)
    net.ip("b", "addr del 10.77.1.2/24 dev b1")
    server = Redis(net.b, ADDR_B)
    b = Daemon(t, "b", {"devices": net.devices("b"), "egress": egress((server.host, server.port))}, wrap=net.b.wrap())
    a = Daemon(t, "a", {"devices": net.devices("a"), "smcr": {"hold_off": "10ms", "hold_off_max": "1s"},
                        "ingress": [{"name": "x", "listen": f"{ADDR_A}:12001", "to": f"{ADDR_B}:12000"}]})
    net.ip("b", "addr add 10.77.1.2/24 dev b1", f"route replace {ADDR_A} via 10.77.1.1 dev b1 src {ADDR_B} metric 11")
    wait_devices(b, {"b1": ("up", "10.77.1.2")})
    c = RedisClient(net.connect(12001))
    equal(c.call("SET", "x", "1"), b"OK", "answer")
    equal([x["mode"] for x in a.connections()], ["smcr"], "mode")


main()
