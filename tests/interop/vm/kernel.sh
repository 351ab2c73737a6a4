#!/bin/bash
# kernel.sh CACHE [PACKAGE]: makes CACHE/PACKAGE/ with the kernel, the modules that the laboratory may need, and the
# initramfs. Nothing is installed. PACKAGE is a kernel image of Debian, or the package that depends on the present one.
# user-mode-linux is one that runs as a process of the host. The last line says which, and whether it was there; status 3: it
# cannot be had, the last line says why.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:?usage: kernel.sh CACHE [PACKAGE]}
wanted=${2:-linux-image-amd64}
tmp=$cache/.fetch.$$

cannot() { echo "$*"; exit 3; }

# The image that a package stands for, as far as apt knows.
image_of() {
	case $1 in linux-image-[0-9]*.*.*-*|user-mode-linux) echo "$1"; return;; esac
	apt-cache depends "$1" 2> /dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }'
}

fetch() {
	local deb
	trap 'rm -rf "$tmp"' EXIT
	mkdir -p "$tmp/deb" "$tmp/new"
	# As root apt would rather fetch as another user, without write permission here.
	(cd "$tmp/deb" && timeout 300 apt-get -q -o APT::Sandbox::User=root download "$1") > "$tmp/log" 2>&1 < /dev/null ||
		cannot "$1 cannot be downloaded: $(grep -m 1 '^E:' "$tmp/log" || tail -n 1 "$tmp/log")"
	deb=$(ls "$tmp"/deb/*.deb)
	if [ "$1" = user-mode-linux ]; then
		extract "$deb" './usr/bin/linux.uml' './usr/lib/uml/modules/*/modules.*' './usr/lib/uml/modules/*/kernel/fs/overlayfs' \
			'./usr/lib/uml/modules/*/kernel/net' './usr/lib/uml/modules/*/kernel/drivers/net/*.ko' \
			'./usr/lib/uml/modules/*/kernel/lib' './usr/lib/uml/modules/*/kernel/crypto'
		mv "$tmp/new/usr/bin/linux.uml" "$tmp/new/kernel"
		mv "$tmp/new/usr/lib/uml" "$tmp/new/lib"
		rm -r "$tmp/new/usr"
	else
		extract "$deb" './boot/vmlinuz-*' './lib/modules/*/modules.*' './lib/modules/*/kernel/arch' './lib/modules/*/kernel/crypto' \
			'./lib/modules/*/kernel/lib' './lib/modules/*/kernel/net' './lib/modules/*/kernel/fs/9p' \
			'./lib/modules/*/kernel/fs/netfs' './lib/modules/*/kernel/fs/overlayfs' './lib/modules/*/kernel/fs/fscache' './lib/modules/*/kernel/fs/configfs' \
			'./lib/modules/*/kernel/drivers/infiniband' './lib/modules/*/kernel/drivers/virtio' \
			'./lib/modules/*/kernel/drivers/char/hw_random' './lib/modules/*/kernel/drivers/net/*.ko*'
		unpack "$tmp"/new/boot/vmlinuz-* > "$tmp/new/kernel"
		rm -r "$tmp/new/boot"
	fi
	prepare "$tmp/new"
	[ "$1" != user-mode-linux ] || runs_here "$tmp/new" || cannot "$1 does not run on this host: $(grep -m 1 -i panic "$tmp/log" || tail -n 1 "$tmp/log")"
	rm -rf "${cache:?}/$1"
	mv "$tmp/new" "$cache/$1"
}

# extract DEB PATTERN...: the files that there are of these.
extract() {
	local deb=$1
	shift
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp/new" --wildcards --no-wildcards-match-slash "$@" 2> "$tmp/log" ||
		grep -q 'Not found in archive' "$tmp/log" || { cat "$tmp/log"; exit 1; }
}

# unpack BZIMAGE: the ELF file in it (Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length; the last
# four bytes are its size), which qemu starts by its PVH note. An emulated processor takes seconds to unpack it itself.
unpack() {
	local setup offset length
	setup=$(od -An -t u1 -j $((0x1f1)) -N 1 "$1")
	read -r offset length < <(od -An -t u4 -j $((0x248)) -N 8 "$1")
	tail -c +$(((setup + 1) * 512 + offset + 1)) "$1" | head -c $((length - 4)) > "$1.payload"
	xz -dc < "$1.payload" 2> /dev/null || zstd -dqc < "$1.payload"
}

# prepare DIR: what an emulated processor would take long for is done here: unpacking modules, and checking their signatures, which
# `strip` takes off.
prepare() {
	find "$1/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	find "$1/lib/modules" -name '*.ko' -exec strip -g {} +
	depmod -b "$1" "$(ls "$1/lib/modules")"
	initramfs "$1"
}

# runs_here DIR: until init misses the host's files. A processor may have registers that a kernel in user mode does not restore.
runs_here() {
	TMPDIR=/dev/shm timeout -k 5 60 "$1/kernel" mem=128M "initrd=$1/initrd" quiet con=null con0=null,fd:1 "uml_dir=$tmp" LAB_SHARE=/nonexistent \
		> "$tmp/log" 2>&1 < /dev/null || true
	grep -q 'no files of the host' "$tmp/log"
}

# initramfs DIR: what is needed to mount the host's files; everything else the guest takes from there.
initramfs() {
	local dir=$1 root=$1/initramfs version busybox module name n=10
	version=$(ls "$dir/lib/modules")
	busybox=$(command -v busybox)
	mkdir -p "$root"/{bin,modules,proc,sys,dev,lower,root,share}
	cp -L "$busybox" "$root/bin/busybox"
	for name in virtio_pci virtio_rng 9pnet_virtio 9p overlay; do
		modprobe -d "$dir" -S "$version" --show-depends "$name" 2> /dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' > "$root/order"
	while read -r module; do
		name=$(basename "$module")
		cp "$module" "$root/modules/$n-$name"
		n=$((n + 1))
	done < "$root/order"
	rm "$root/order"
	cp "$here/init" "$root/init"
	chmod 755 "$root/init"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) > "$dir/initrd.new"
	mv "$dir/initrd.new" "$dir/initrd"
	rm -rf "$root"
}

mkdir -p "$cache"
exec 9> "$cache/lock"
flock -w 600 9
image=$(image_of "$wanted")
if [ -z "$image" ] && [ "$(id -u)" -eq 0 ]; then
	timeout 120 apt-get -q update > /dev/null 2>&1 < /dev/null || true
	image=$(image_of "$wanted")
fi
if [ -z "$image" ]; then	# no package lists: what was fetched before will do
	image=$(cat "$cache/image-of-$wanted" 2> /dev/null || true)
	[ -n "$image" ] || cannot "apt knows no $wanted (apt-get update?)"
fi
if [ -f "$cache/$image/kernel" ] && [ -f "$cache/$image/initrd" ] &&
	compgen -G "$cache/$image/lib/modules/*/kernel/fs/overlayfs" > /dev/null; then
	if [ "$here/init" -nt "$cache/$image/initrd" ] || [ "$here/kernel.sh" -nt "$cache/$image/initrd" ]; then
		prepare "$cache/$image"
	fi
	echo "$image, from the cache"
else
	fetch "$image"
	echo "$image" > "$cache/image-of-$wanted"
	echo "$image, downloaded and unpacked"
fi
