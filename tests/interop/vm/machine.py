"""
One virtual machine on the host: qemu under software emulation, which is the same everywhere and needs no right, or a kernel in
user mode, a process of the host. It runs one test, writes what it has to say into a directory that it shares with the host, and
ends. See `guest` and `init`.
"""
import ctypes
import itertools
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP_SRC = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TOP_SRC = os.path.abspath(TOP_SRC)
TOP_BUILD = os.path.abspath(os.environ.get("top_builddir") or os.path.join(TOP_SRC, "build"))
QEMU = "qemu-system-x86_64"
USER_MODE = "user-mode-linux"	# twice as fast, but without RDMA and AF_SMC
MEMORY = "1G"
CPUS = 1		# one is quicker than two where the host has two, and tests run beside each other
CPU = "max,erms=off"	# kernel and libc would copy and clear by "rep movsb", which the emulator does byte by byte
# Without what takes half of a boot and no test needs: device tables in ACPI's language, a source of random numbers that measures
# time, self-tests, certificates. And without a look whether the timer ticks, which on a busy host it does not do in time.
BOOT = "acpi=off no_timer_check cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list"
# A system that boots has profiles, and its kernel says what they deny: it does not if it is told audit=0 and then audit=1.
AUDIT = {True: "apparmor=1 security=apparmor audit=1", False: "audit=0"}
# Without what protects a kernel or serves its operator, where speed is not measured: 7 % of the time of check_afsmc_ends.py.
QUICK = "init_on_alloc=0 hardened_usercopy=off psi=0 preempt=none nowatchdog"
BOOT_S = 150		# until it takes commands; usually 3, and 15 with systemd; beside others many times that
TRIES = 3		# a guest kernel now and then panics while it boots
PATIENCE = 4		# the harness's deadlines are for a real machine
LIBC = ctypes.CDLL(None)
PROCESSORS = itertools.cycle(sorted(os.sched_getaffinity(0)))


def _clock():
    """For the kernel: how fast the time stamp counter runs, which is the host's, as tsc_khz.c says; or that it is of no use. What
    the kernel measures itself on a busy host lets its clock go up to 25 times too fast."""
    program = os.path.join(TOP_BUILD, "tests", "interop", "vm", "tsc_khz")
    if not os.path.exists(program):
        return "tsc=unstable"
    khz = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    return f"tsc=reliable tsc_early_khz={khz}"


class Died(Exception):
    """The machine ended before it should; the text is what its console said last."""


class Hangs(Exception):
    """The script does not end."""


def _child_setup():
    LIBC.prctl(1, signal.SIGKILL)	# ends with us, however that happens


def wire(share, end, cards=1):
    """For qemu: network cards at this end, "a" or "b", of a wire between two machines, several of them behind a hub. Datagrams
    between two sockets in a directory: no right is needed, and either end may be gone, or come back, as with a cable."""
    there = "b" if end == "a" else "a"
    args = ["-netdev", f"dgram,id=wire,local.type=unix,local.path={share}/wire-{end},"
            f"remote.type=unix,remote.path={share}/wire-{there}"]
    if cards > 1:
        args += ["-netdev", "hubport,hubid=0,id=hub0,netdev=wire"]
    for i in range(1, cards + 1):
        if cards > 1:
            args += ["-netdev", f"hubport,hubid=0,id=hub{i}"]
        args += ["-device", f"virtio-net-pci,netdev={f'hub{i}' if cards > 1 else 'wire'},romfile=,"
                 f"mac=52:54:00:78:{i:02}:{'01' if end == 'a' else '02'}"]
    return args


class Machine:
    def __init__(self, kernel, script, limit, case="", name="vm", share=None, qemu_args=(), icount=None, system=""):
        """kernel: directory made by kernel.sh; script: what to run, beside this file; limit: its seconds. The directory
        that is shared, `share`, is the caller's, and may have files in it. With icount each instruction takes
        2^icount ns of the machine's time, however busy the host is: for measurements of speed. system: the directory of one that
        boots, in place of the host's files alone."""
        self.kernel, self.script, self.limit = os.path.abspath(kernel), script, limit
        self.name, self.case = name, case
        self.share = share or tempfile.mkdtemp(prefix="smcrd-vm-")
        self.qemu_args = list(qemu_args)
        self.icount = icount
        self.system = system and os.path.abspath(system)
        self.user_mode = os.path.basename(self.kernel) == USER_MODE
        self.proc = None
        self.ended = False
        self.spawning = threading.Lock()
        self.boot_s = None
        self.cpu_s = 0

    def path(self, name):
        return os.path.join(self.share, name)

    def read(self, name, default=""):
        try:
            with open(self.path(name), errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return default

    def _write_env(self):
        env = {"TOP_SRC": TOP_SRC, "TOP_BUILD": TOP_BUILD, "KERNEL": self.kernel, "SHARE": self.share,
               "SCRIPT": self.script, "LIMIT": self.limit, "CASE": self.case, "MACHINE": self.name,
               "SYSTEM": self.system,
               "PATIENCE": os.environ.get("SMCRD_PATIENCE", PATIENCE)}
        with open(self.path("env"), "w") as f:
            f.write("".join(f"{k}={shlex.quote(str(v))}\n" for k, v in env.items()))

    def _accel(self):
        if self.icount is None:
            return ["-accel", os.environ.get("SMCRD_VM_ACCEL", "tcg,thread=multi,tb-size=256")]
        return ["-accel", "tcg,thread=single,tb-size=256", "-icount", f"shift={self.icount},align=on,sleep=on"]

    def _qemu(self):
        return [QEMU, *self._accel(), "-cpu", CPU,
                "-m", os.environ.get("SMCRD_VM_MEMORY", MEMORY), "-smp", os.environ.get("SMCRD_VM_CPUS", str(CPUS)),
                "-name", f"smcrd-{self.name}", "-nodefaults", "-no-reboot", "-display", "none",
                "-serial", f"file:{self.path('console')}",
                "-kernel", os.path.join(self.kernel, "kernel"), "-initrd", os.path.join(self.kernel, "initrd"),
                "-append", f"console=ttyS0 edd=off panic=-1 oops=panic quiet net.ifnames=0 mitigations=off {BOOT} "
                           f"{f'{QUICK} {AUDIT[bool(self.system)]} {_clock()}' if self.icount is None else ''}",
                "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
                "-virtfs", f"local,path={self.share},mount_tag=share,security_model=none",
                "-device", "virtio-rng-pci", *(self.qemu_args or ["-nic", "none"])]

    def _user_mode(self):
        """The machine's processes are the host's, and would go on as such if their kernel alone was killed: they have a namespace. Its
        first process is a shell, as a kernel that panics ends by a signal, which a first process does not get. On one processor:
        each call of a guest's process is two switches, dear between processors."""
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return ["env", "TMPDIR=/dev/shm", "unshare", *rights, "--pid", "--fork", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh",
                "taskset", "-c", str(next(PROCESSORS)), os.path.join(self.kernel, "kernel"),
                f"mem={os.environ.get('SMCRD_VM_MEMORY', MEMORY)}", f"initrd={os.path.join(self.kernel, 'initrd')}",
                "con=null", "con0=null,fd:1", "ssl=null",
                *f"oops=panic quiet net.ifnames=0 {AUDIT[bool(self.system)]} LAB_SHARE={self.share} uml_dir={self.share}".split()]

    def _spawn(self):
        for name in ("up", "out", "status", "dmesg"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        argv = self._user_mode() if self.user_mode else self._qemu()
        with open(self.path("console" if self.user_mode else "qemu"), "wb") as out, self.spawning:
            if self.ended:
                raise Died("ended from outside")
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=_child_setup)

    def boot(self):
        """Until it begins with the script."""
        self.boot_s = None
        self._write_env()
        for attempt in range(1, TRIES + 1):
            start = time.monotonic()
            self._spawn()
            while time.monotonic() < start + BOOT_S * (1 if self.icount is None else 2):
                if os.path.exists(self.path("up")):
                    self.boot_s = time.monotonic() - start
                    return attempt
                if self.proc.poll() is not None:
                    break
                time.sleep(0.05)	# raw: between two looks
            self.kill()
        raise Died(f"does not boot, {TRIES} times tried; {self.last_words()}")

    def last_words(self):
        console = self.read("console").replace("\r", "")
        said = [x for x in console.split("\n") if re.search(r"Oops|BUG|panic|Comm:|RIP:|RSP:|CR2:|no files", x)] or console.split("\n")[-6:]
        return " / ".join(x for x in [self.read("qemu").strip(), *said[:12]] if x)

    def finish(self, watch=lambda: None):
        """Waits until the script has ended, and the machine is off: the lines that the script has said. Raises Died, Hangs, and
        what watch() raises, which is called all the time."""
        end = time.monotonic() + self.limit + 60
        while self.proc.poll() is None and not os.path.exists(self.path("status")):
            watch()
            self.note_cpu()
            if time.monotonic() > end:
                raise Hangs(f"{self.script} still runs after {self.limit + 60} s")
            time.sleep(0.05)	# raw: between two looks
        try:
            self.proc.wait(30)	# raw: then it is killed
        except subprocess.TimeoutExpired:
            self.kill()
        if not self.read("status"):
            raise self._died()
        return self.read("out").split("\n")

    def note_cpu(self):
        """Of the processor, in seconds so far; it is known as long as qemu lives, or the kernel behind `unshare` and its shell."""
        pid = self.proc.pid
        try:
            for _ in range(2 if self.user_mode else 0):
                with open(f"/proc/{pid}/task/{pid}/children") as f:
                    pid = int((f.read().split() or [pid])[0])
            with open(f"/proc/{pid}/stat") as f:
                ticks = f.read().rsplit(")", 1)[1].split()[11:15]
            self.cpu_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass

    def watch(self):
        self.check_alive()
        self.note_cpu()

    def check_alive(self):
        """Raises Died when it was up and has ended by itself: not killed, and not because its script had ended."""
        if self.boot_s is not None and self.proc.poll() not in (None, -signal.SIGKILL) and not self.read("status"):
            raise self._died()

    def _died(self):
        return Died(f"ended in the middle of {self.script}; {self.last_words()}")

    def kill(self):
        """As a power failure does; it can boot again."""
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
        if self.proc:
            self.proc.wait()

    def end(self):
        """For good, also while another thread boots it: boot() raises Died there."""
        with self.spawning:
            self.ended = True
        self.kill()


class Peer:
    """The second machine of a pair. What happens to it is the first one's wish: that makes a file `boot` or `kill` in the
    directory that the host shares with the second one, and the file vanishes when it is done."""

    def __init__(self, machine):
        self.machine = machine
        self.ending = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self._run, daemon=True)	# qemu lives as long as the thread that began it
        self._wish("boot")
        self.thread.start()

    def _wish(self, what):
        with open(self.machine.path(what), "w"):
            pass

    def _run(self):
        while not self.ending.wait(0.02):
            for what in ("boot", "kill"):
                if os.path.exists(self.machine.path(what)):
                    try:
                        getattr(self.machine, what)()
                    except Died as e:
                        self.failure = e
                    os.unlink(self.machine.path(what))
        self._wish("end")
        try:
            if self.machine.proc:
                self.machine.proc.wait(15)	# raw: then it is killed
        except subprocess.TimeoutExpired:
            pass
        self.machine.kill()

    def end(self):
        self.ending.set()
        self.thread.join()
