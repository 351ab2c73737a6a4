#!/usr/bin/env python3
"""PostgreSQL through a pair: pgbench with its books balanced, and COPY of a large table both ways."""
import hashlib

from harness import Pair, case, check, equal, main, need, SHRINK
from programs import Postgres, postgres_bin


def setup(t):
    server = Postgres(t)
    pair = Pair(t, {"pg": server.at})
    where = ["-h", pair.host, "-p", str(pair.port["pg"]), "-U", "postgres"]

    def sql(text, **kw):
        return t.run([need("psql"), *where, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text], timeout=120, **kw)
    return pair, where, sql


@case("pgbench: initialise, read only, read and write; the balances match", timeout=150)
def _(t):
    pair, where, sql = setup(t)
    pgbench = postgres_bin("pgbench")
    t.run([pgbench, *where, "-i", "-q", "-s", "2", "postgres"], timeout=120)
    for extra in (["-S"], [], ["-M", "prepared", "-C"]):
        count = (400 if "-C" not in extra else 40) // SHRINK
        out = t.run([pgbench, *where, "-n", "-c", "8", "-t", str(count), *extra, "postgres"], timeout=120).decode()
        done = f"number of transactions actually processed: {8 * count}/{8 * count}"
        check(done in out, f"pgbench {extra}: {out}")
        t.note(f"pgbench {' '.join(extra)}: " + [line for line in out.split("\n") if line.startswith("tps")][0])
    sums = sql("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches),"
               " (select sum(tbalance) from pgbench_tellers), (select sum(delta) from pgbench_history)").decode()
    equal(len(set(sums.strip().split("|"))), 1, f"different sums {sums.strip()}")
    pair.only_smcr(8)


@case("COPY of 40 MB in and out", timeout=240)
def _(t):
    pair, where, sql = setup(t)
    rows, width = 4000 // SHRINK, 10000
    path = t.path("rows")
    sent = hashlib.sha256()
    with open(path, "wb") as f:
        for i in range(rows):
            text = hashlib.sha256(b"%d" % i).hexdigest().encode()
            line = b"%d\t%s\n" % (i, (text * (width // 64 + 1))[:width])
            sent.update(line)
            f.write(line)
    sql("create unlogged table big (id int, body text); alter table big alter body set storage external")
    with open(path, "rb") as f:
        sql("copy big from stdin", stdin=f)
    equal(sql("select count(*), sum(length(body)) from big").decode().strip(), f"{rows}|{rows * width}", "rows, bytes")
    out = t.path("rows.out")
    argv = [need("psql"), *where, "-qAtX", "-c", "copy (select * from big order by id) to stdout"]
    with open(out, "wb") as f:
        equal(t.spawn(argv, stdout=f).wait(120), 0, "exit status of psql")
    back = hashlib.sha256()
    with open(out, "rb") as f:
        while part := f.read(1 << 20):
            back.update(part)
    equal(back.hexdigest(), sent.hexdigest(), "checksum of what came back")
    pair.only_smcr(3)


main()
