/* The BPF program that writes and finds SMC-R's TCP option; see net/tcp_option_bpf.c. Used by net/tcp_option.c. */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

#define TCP_OPTION_INSNS_MAX 128

/* The map's value of a socket, a uint32_t. */
enum {
	TCP_OPTION_WANTED = 1 << 0, /* set by tcp_option_mark() */
	TCP_OPTION_PEER = 1 << 1,   /* the peer's SYN or SYN/ACK had the option */
	TCP_OPTION_KNOWN = 1 << 2,  /* the connection is established: PEER is valid */
};

/* Writes the program for this map (a descriptor); returns the number of instructions. */
unsigned tcp_option_prog_make(struct bpf_insn insns[TCP_OPTION_INSNS_MAX], int map);
