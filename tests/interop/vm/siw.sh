#!/bin/bash
# siw.sh CACHE IMAGE: adds the kernel's soft iWARP, siw, which Debian does not build, to the modules of the kernel that
# kernel.sh made in CACHE/IMAGE: from the kernel's source and headers as Debian has them, of which nothing is installed or
# kept. The last line says whether it was there; status 3: it cannot be had, the last line says why.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "${1:?usage: siw.sh CACHE IMAGE}" && pwd)
image=${2:?usage: siw.sh CACHE IMAGE}
dir=$cache/$image
tmp=$cache/.siw.$$

cannot() { echo "$*"; exit 3; }

# What a package depends on whose name begins so, as far as apt knows.
dependency() {
	apt-cache depends "$1" 2> /dev/null | awk -v begin="$2" '$1 == "Depends:" && index($2, begin) == 1 { print $2; exit }'
}

download() {
	# As root apt would rather fetch as another user, without write permission here.
	(cd "$tmp" && timeout 300 apt-get -q -o APT::Sandbox::User=root download "$@") > "$tmp/log" 2>&1 < /dev/null ||
		cannot "siw: $* cannot be downloaded: $(grep -m 1 '^E:' "$tmp/log" || tail -n 1 "$tmp/log")"
}

# Headers whose path is not the one that they were made for.
unpack_headers() {
	local deb
	for deb in "$tmp"/linux-headers-*.deb "$tmp"/linux-kbuild-*.deb; do
		dpkg-deb -x "$deb" "$tmp/headers"
	done
	sed -i "s,^include /usr/src/,include $tmp/headers/usr/src/," "$tmp/headers/usr/src/linux-headers-$release/Makefile"
}

unpack_source() {
	mkdir "$tmp/siw"
	dpkg-deb --fsys-tarfile "$tmp"/linux-source-*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		xz -dc -T0 | tar -x -C "$tmp/siw" --strip-components=5 --wildcards '*/drivers/infiniband/sw/siw/*'
}

# adapt PLACE FILE EXPRESSION: by sed; there has to be something to change.
adapt() {
	cp "$tmp/siw/$2" "$tmp/before"
	sed -i -E "$3" "$tmp/siw/$2"
	! cmp -s "$tmp/before" "$tmp/siw/$2" || { echo "siw: no place in $2 for $1"; exit 1; }
}

# What is constant in siw becomes a parameter, as it once was, and two are added to make happen what else takes luck.
parameters() {
	local name
	for name in mpa_crc_required peer_to_peer; do
		adapt "$name" siw_main.c "s/^const bool $name;/bool $name;\nmodule_param($name, bool, 0644);/"
		adapt "$name" siw.h "s/^extern const bool $name;/extern bool $name;/"
	done
	adapt mpa_version siw_main.c 's/^u_char mpa_version = .*;/&\nmodule_param(mpa_version, byte, 0644);/'
	adapt rtr_type siw_cm.c 's/^static __be16 rtr_type = .*;/&\nmodule_param_named(rtr_type, rtr_type, ushort, 0644);/'
	# So many milliseconds between the MPA Reply and the ear for what follows it.
	adapt reply_gap siw_cm.c '
		s/^static __be16 rtr_type = .*;/&\nstatic uint reply_gap;\nmodule_param(reply_gap, uint, 0644);/
		s/^(\t)if \(wait_for_peer_rts\) \{/\tif (reply_gap)\n\t\tmsleep(reply_gap);\n&/
		1,/^#include/s/^#include/#include <linux\/delay.h>\n&/'
	# The CRC of the next FPDU that arrives is found wrong.
	adapt bad_crc siw_qp_rx.c 's/^static int siw_get_trailer\(/static bool bad_crc;\nmodule_param(bad_crc, bool, 0644);\n\n&/
		s/^(\tif \()(unlikely\(crc_in != crc_own\))/\1xchg(\&bad_crc, false) || \2/'
}

build() {
	local modules
	modules=$dir/lib/modules/$release
	make -C "$tmp/headers/usr/src/linux-headers-$release" M="$tmp/siw" CONFIG_RDMA_SIW=m modules > "$tmp/log" 2>&1 \
		< /dev/null || { grep -E 'error|Error' "$tmp/log" | head -n 5; echo "siw: make failed"; exit 1; }
	strip --strip-debug "$tmp/siw/siw.ko"
	mkdir -p "$modules/extra"
	mv "$tmp/siw/siw.ko" "$modules/extra/siw.ko"
	depmod -b "$dir" "$release"
}

[ -d "$dir/lib/modules" ] || cannot "siw: no kernel in $dir"
release=$(ls "$dir/lib/modules")
exec 9> "$cache/lock"
flock -w 600 9
if [ "$dir/lib/modules/$release/extra/siw.ko" -nt "$here/siw.sh" ]; then
	echo "siw for $release, from the cache"
	exit 0
fi
headers=linux-headers-$release
common=$(dependency "$headers" linux-headers-)
kbuild=$(dependency "$headers" linux-kbuild-)
compiler=$(dependency "$headers" linux-compiler-gcc-)
version=$(apt-cache show --no-all-versions "$headers" 2> /dev/null | awk '$1 == "Version:" { print $2; exit }')
[ -n "$common" ] && [ -n "$kbuild" ] && [ -n "$version" ] || cannot "siw: apt knows no $headers"
compiler=$(echo "$compiler" | sed -nE 's/^linux-compiler-(gcc-[0-9]+)-.*/\1/p')
for program in make xz strip "${compiler:-gcc}"; do
	command -v "$program" > /dev/null || cannot "siw: $program is not installed"
done
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp"
source=linux-source-$(echo "$release" | grep -oE '^[0-9]+\.[0-9]+')
download "$headers=$version" "$common=$version" "$kbuild" "$source=$version"
unpack_headers
unpack_source
parameters
build
echo "siw for $release, built from version $version"
