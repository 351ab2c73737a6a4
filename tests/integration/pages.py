"""
Documents with lines of configurations and commands that tests try as they stand. Below a section's headline `# HOST: PLACE` says where the
indented lines behind it belong; a first section may have what is common to all others.
"""
import os
import re

from harness import TOP_SRC, Daemon, equal


class Page:
    def __init__(self, name):
        """A document in doc/: section -> [(host, place, lines)]."""
        with open(os.path.join(TOP_SRC, "doc", name), encoding="utf-8") as f:
            text = f.read()
        self.sections = {}
        for part in re.split(r"^## ", text, flags=re.M):
            name, _, body = part.partition("\n")
            for line in re.findall(r"^    (.*)", body, flags=re.M):
                head = re.fullmatch(r"# ([A-Z]+): (.*)", line)
                if head:
                    self.sections.setdefault(name, []).append((*head.groups(), []))
                else:
                    self.sections[name][-1][2].append(line)
        self.common = next(iter(self.sections))

    def names(self):
        """Of the sections without the common one."""
        return [name for name in self.sections if name != self.common]

    def parts(self, name):
        return {(host, place): lines for host, place, lines in self.sections[name]}


class Section:
    """A section on this machine: its paths are below the case's directory."""

    def __init__(self, t, page, name, paths):
        """paths: of the root directory, made here."""
        self.t = t
        self.parts, self.common = page.parts(name), page.parts(page.common)
        self.used, self.paths = set(), paths
        for d in paths:
            os.mkdir(t.path(d))

    def own(self, name, user, group, mode=0o755):
        """A directory as the package of the program makes it."""
        path = self.t.path(name)
        os.mkdir(path)
        os.chmod(path, mode)
        if os.geteuid() == 0:
            os.chown(path, user, group)
        return path

    def here(self, line):
        return re.sub(rf"(?<![\w.])/({'|'.join(self.paths)})/", lambda m: self.t.path(m[1]) + "/", line)

    def lines(self, host, place):
        self.used.add((host, place))
        return [self.here(line) for line in self.parts[host, place]]

    def all_used(self):
        equal(set(self.parts) - self.used, set(), "lines of the page that were not tried")


class PlainDaemon(Daemon):
    """Its configuration is text; wrap: words in front of the command, which change to its user or host."""

    def __init__(self, t, name, text, wrap):
        super().__init__(t, name, text, start=False, wrap=wrap)

    def write_conf(self, conf):
        workers = f"workers = {self.t.workers};" if self.t.workers is not None else ""
        with open(self.conf_path, "w") as f:
            f.write(f'{conf}\ncontrol = {{ path = "{self.control}"; }};\n{workers}\n')
