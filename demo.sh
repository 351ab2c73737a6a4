#!/bin/bash
# Shows smcrd at work on this machine: two daemons on loopback, nginx and Redis behind them, real traffic through them,
# compared with what was sent, and the proof that all of it went by SMC-R. Installs what is missing (as root), builds in
# build-demo/, leaves nothing else behind. Needs no RDMA hardware, no kernel module; as root only for the packages.
set -u
if [ $# -gt 0 ]; then
	[ "$*" = --help ] && exec sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"
	echo "demo.sh: unexpected argument $1; it takes none but --help" >&2
	exit 2
fi
cd "$(dirname "$0")" || exit 1
. tests/tools/packages.sh
build=build-demo
addr=127.77.$(($$ >> 8 & 255)).$(($$ & 255))	# an address of our own on loopback: every port is free there
dir= pids=

cleanup() {
	trap - EXIT INT TERM HUP
	[ -z "$pids" ] || kill $pids 2> /dev/null
	for p in $pids; do wait "$p" 2> /dev/null; done
	[ -z "$dir" ] || rm -rf "$dir"
	packages_cleanup
}
trap cleanup EXIT
trap 'echo; echo interrupted, cleaning up; cleanup; exit 130' INT TERM HUP

die() {
	echo "demo.sh: $*" >&2
	for log in "$dir"/*.log; do [ -s "$log" ] && { echo "-- $log" >&2; tail -n 15 "$log" >&2; }; done
	exit 1
}
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# start NAME COMMAND...: in the background, output to NAME.log.
start() { local name=$1; shift; "$@" > "$dir/$name.log" 2>&1 < /dev/null & pids="$! $pids"; }
# until_true WHAT COMMAND...: at most 15 seconds.
until_true() {
	local what=$1 i; shift
	for i in $(seq 150); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
	die "$what: not within 15 seconds"
}

say "1. Packages and build"
packages_install $PACKAGES_BUILD $PACKAGES_DEMO || exit 1
mkdir -p $build
{ [ -x configure ] || ./autogen.sh; } > $build/demo.log 2>&1 || { cat $build/demo.log; exit 1; }
( cd $build && { [ -f Makefile ] || ../configure -q; } && make -s -j"$(nproc)" ) >> $build/demo.log 2>&1 ||
	{ tail -n 30 $build/demo.log; exit 1; }
echo "built: $build/smcrd, $build/smcrctl"

dir=$(mktemp -d /tmp/smcrd-demo.XXXXXX) || exit 1
chmod 755 "$dir"
export PATH=$PATH:/usr/sbin

say "2. Servers: nginx with a file of 64 MiB, and Redis"
mkdir "$dir/root"
head -c 67108864 /dev/urandom > "$dir/root/file"
cat > "$dir/nginx.conf" <<END
daemon off; pid $dir/nginx.pid; error_log $dir/nginx.log; worker_processes 1;
$([ "$(id -u)" -ne 0 ] || echo "user root;")
events { worker_connections 1024; }
http { access_log off; client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
  uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
  server { listen $addr:8000; root $dir/root; } }
END
start nginx nginx -e "$dir/nginx.log" -c "$dir/nginx.conf"
start redis redis-server --bind $addr --port 6379 --save "" --dir "$dir" --protected-mode no
until_true "nginx answers" curl -sf -o /dev/null -r 0-0 "http://$addr:8000/file"
until_true "Redis answers" redis-cli -h $addr ping

say "3. Two daemons:  client --TCP--> smcrd a ==SMC-R over iWARP==> smcrd b --TCP--> server"
cat > "$dir/b.conf" <<END
control = { path = "$dir/b.control"; };
egress = (
  { name = "web";   listen = "$addr:18000"; to = "$addr:8000"; },
  { name = "redis"; listen = "$addr:16379"; to = "$addr:6379"; }
);
END
cat > "$dir/a.conf" <<END
control = { path = "$dir/a.control"; };
ingress = (
  { name = "web";   listen = "$addr:28000"; to = "$addr:18000"; },
  { name = "redis"; listen = "$addr:26379"; to = "$addr:16379"; }
);
END
sed 's/^/  a.conf: /' "$dir/a.conf"
sed 's/^/  b.conf: /' "$dir/b.conf"
start b $build/smcrd -f "$dir/b.conf"
start a $build/smcrd -f "$dir/a.conf"
ctl() { local side=$1; shift; $build/smcrctl --socket "$dir/$side.control" "$@"; }
until_true "daemon b answers" ctl b status
until_true "daemon a answers" ctl a status

say "4. Traffic, to the ports of daemon a"
want=$(sha256sum < "$dir/root/file")
got=$(curl -sf "http://$addr:28000/file" | sha256sum)
[ "$got" = "$want" ] || die "the file from nginx is not what was put there"
echo "nginx: 64 MiB fetched by curl, SHA-256 as it should be: ${got%% *}"
redis-cli -h $addr -p 26379 -x set demo < <(head -c 5000000 "$dir/root/file" | base64 -w 0) > /dev/null
got=$(redis-cli -h $addr -p 26379 get demo | tr -d '\n' | sha256sum)
want=$(head -c 5000000 "$dir/root/file" | base64 -w 0 | sha256sum)
[ "$got" = "$want" ] || die "the value from Redis is not what was stored"
echo "redis: a value of 6.7 MB stored and read back, SHA-256 as it should be: ${got%% *}"
redis-benchmark -h $addr -p 26379 -t get -c 50 -n 20000 -q 2> /dev/null | tr '\r' '\n' | grep 'requests per second' |
	sed 's/^ */redis-benchmark, 50 connections: /' || die "redis-benchmark failed"

say "5. What runs right now: two slow downloads and a waiting Redis client"
start curl1 curl -s --limit-rate 2M -o /dev/null "http://$addr:28000/file"
start curl2 curl -s --limit-rate 1M -o /dev/null "http://$addr:28000/file"
start waiting redis-cli -h $addr -p 26379 blpop nothing 300
three() { [ "$(ctl a --json connections | grep -o '"mode": *"smcr"' | wc -l)" -eq 3 ]; }
until_true "three connections on SMC-R" three
for side in a b; do
	echo "\$ smcrctl status	(daemon $side)"
	ctl $side status
	echo
	echo "\$ smcrctl connections	(daemon $side)"
	ctl $side connections
	echo
	ctl $side --json connections | grep -q '"mode": *"tcp"' && die "a connection of daemon $side is on plain TCP"
	ctl $side --json status | grep -o '"fallbacks": *[0-9]*' | grep -qv ': *0$' && die "daemon $side fell back to TCP"
done

say "Everything arrived intact, and every connection went by SMC-R, none by TCP."
