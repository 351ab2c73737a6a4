/* The BPF program by which the kernel writes and looks for SMC-R's TCP option; see smcopt_prog.c. Used by smcopt.c. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define SMCOPT_INSNS_MAX 128

/* What the map has of a socket, a uint32_t. */
enum {
	SMCOPT_WANTED = 1 << 0, /* set by smcopt_mark() */
	SMCOPT_PEER = 1 << 1,   /* the peer's SYN or SYN/ACK had the option */
	SMCOPT_KNOWN = 1 << 2,  /* the connection is established: PEER counts */
};

/* Writes the program that uses this map (a descriptor); returns the number of instructions. */
unsigned smcopt_prog_make(struct bpf_insn insns[SMCOPT_INSNS_MAX], int map);

/* Types in the kernel's own format (BTF), which a map of sockets has to name: one, a 32-bit integer. */
#define SMCOPT_BTF_INT 1 /* its number */
#define SMCOPT_BTF_MAX 64
size_t smcopt_btf_make(uint8_t buf[SMCOPT_BTF_MAX]);
