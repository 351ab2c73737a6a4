/* The BPF program for SMC-R's TCP option, assembled by hand: neither build nor host needs a compiler or library for it.
 * TCP calls it for sockets of the daemon's cgroup ("sock_ops"); it handles only those in the map. It is a list of
 * instructions with labels, which tcp_option_prog_make converts to the kernel's form.
 *
 *	connect(), listen()	request callbacks for the options of SYN and SYN/ACK
 *	length of the options	reserve 6 bytes, in a SYN/ACK only if the SYN had the option
 *	options are written	store the option
 *	established		write into the map whether the peer's segment had it
 *
 * Registers: R6 is the context (struct bpf_sock_ops), R10 the end of the stack. R0 is the result of a helper, R1 to R5
 * its arguments, lost with each call. */
#include "daemon/net/tcp_option_bpf.h"

#include <arpa/inet.h>

#include "wire/tcpopt.h"

/* -- an assembler: labels are jumped to forward only -- */

enum { R0 = BPF_REG_0, R1, R2, R3, R4, R5, R6, R7, R8, R10 = BPF_REG_10 };

enum label { L_NONE, L_ARM, L_OPTION, L_SYN, L_OURS, L_STORE, L_ESTABLISHED, L_KNOWN, L_END, L_CNT };

/* Code 0 with a number, which the kernel does not have, marks the place of that label. */
#define LABEL(label) ((struct bpf_insn){ .code = 0, .imm = (label) })

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_I(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD_I(d, i) INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define OR_I(d, i) INSN(BPF_ALU64 | BPF_OR | BPF_K, d, 0, 0, i)
#define AND_I(d, i) INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define LOAD_W(d, s, o) INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define LOAD_DW(d, s, o) INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE_W(d, o, s) INSN(BPF_STX | BPF_MEM | BPF_W, d, s, o, 0)
#define STORE_WORD(d, o, i) INSN(BPF_ST | BPF_MEM | BPF_W, d, 0, o, (int32_t)htonl(i))
#define JUMP(l) INSN(BPF_JMP | BPF_JA, 0, 0, l, 0)
#define JUMP_EQ(d, i, l) INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, l, i)
#define JUMP_NE(d, i, l) INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, l, i)
#define JUMP_GE(d, i, l) INSN(BPF_JMP | BPF_JSGE | BPF_K, d, 0, l, i)
#define CALL(f) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##f)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Two instructions: a 64-bit constant that the kernel replaces by the map's address. */
#define LOAD_MAP(d, fd) INSN(BPF_LD | BPF_IMM | BPF_DW, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

#define CTX(field) ((short)offsetof(struct bpf_sock_ops, field))

/* R0 = the map's value of this socket; ends the program when it has none (or is no full socket). */
#define FIND_OURS(map)                                                                                           \
	LOAD_DW(R2, R6, CTX(sk)), JUMP_EQ(R2, 0, L_END), LOAD_MAP(R1, map), MOV_I(R3, 0), /* no initial value */ \
	    MOV_I(R4, 0),                                                                 /* do not create */    \
	    CALL(sk_storage_get), JUMP_EQ(R0, 0, L_END)

/* The option on the stack: to store it, and to search for it (kind, length, magic). */
#define OPTION (-8)
#define PUT_OPTION()                                                                                                 \
	STORE_WORD(R10, OPTION, (uint32_t)TCPOPT_SMCR_KIND << 24 | TCPOPT_SMCR_LEN << 16 | TCPOPT_SMCR_MAGIC >> 16), \
	    STORE_WORD(R10, OPTION + 4, TCPOPT_SMCR_MAGIC << 16)

/* Arguments of helpers: context, option, length; the caller sets R4. */
#define OPTION_ARGS() MOV(R1, R6), MOV(R2, R10), ADD_I(R2, OPTION), MOV_I(R3, TCPOPT_SMCR_LEN)

#define CALL_ME BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG
#define FLAG_SYN 0x02 /* of the TCP header, RFC 9293 3.1 */
#define FLAG_ACK 0x10
#define TOO_LONG (-28) /* -ENOSPC of load_hdr_opt: the option exists and is longer than ours */

/* Removes the labels and sets the distances of jumps. Returns the number of instructions. */
static unsigned
resolve(const struct bpf_insn *prog, size_t cnt, struct bpf_insn out[TCP_OPTION_INSNS_MAX])
{
	unsigned at[L_CNT] = { 0 }, len = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (prog[i].code == 0 && prog[i].imm != L_NONE)
			at[prog[i].imm] = len;
		else
			out[len++] = prog[i];
	}
	for (unsigned i = 0; i < len; i++) {
		unsigned op = BPF_OP(out[i].code);

		if (BPF_CLASS(out[i].code) == BPF_JMP && op != BPF_CALL && op != BPF_EXIT)
			out[i].off = (short)(at[out[i].off] - i - 1);
	}
	return len;
}

/* -- the program -- */

unsigned
tcp_option_prog_make(struct bpf_insn out[TCP_OPTION_INSNS_MAX], int map)
{
	const struct bpf_insn prog[] = {
		MOV(R6, R1),
		/* The operation of TCP. R7 is where the peer's option is once established: 0 = this segment. */
		LOAD_W(R1, R6, CTX(op)),
		JUMP_EQ(R1, BPF_SOCK_OPS_TCP_CONNECT_CB, L_ARM),
		JUMP_EQ(R1, BPF_SOCK_OPS_TCP_LISTEN_CB, L_ARM),
		JUMP_EQ(R1, BPF_SOCK_OPS_HDR_OPT_LEN_CB, L_OPTION),
		JUMP_EQ(R1, BPF_SOCK_OPS_WRITE_HDR_OPT_CB, L_OPTION),
		MOV_I(R7, 0),
		JUMP_EQ(R1, BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB, L_ESTABLISHED),
		MOV_I(R7, BPF_LOAD_HDR_OPT_TCP_SYN),
		JUMP_EQ(R1, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB, L_ESTABLISHED),
		JUMP(L_END),

		/* connect() or listen() on a marked socket: L_OPTION is reached for it after this. Requests and
		 * accepted sockets inherit that from their listener. */
		LABEL(L_ARM),
		FIND_OURS(map),
		LOAD_W(R2, R6, CTX(bpf_sock_ops_cb_flags)),
		OR_I(R2, CALL_ME),
		MOV(R1, R6),
		CALL(sock_ops_cb_flags_set),
		JUMP(L_END),

		/* The options of a segment are measured, then written. args[0]: 1 = only the size is asked, without a
		 * segment; 2 = a SYN cookie, which keeps no state. */
		LABEL(L_OPTION),
		LOAD_W(R2, R6, CTX(args[0])),
		JUMP_NE(R2, 0, L_END),
		LOAD_W(R8, R6, CTX(skb_tcp_flags)),
		PUT_OPTION(),
		MOV(R1, R8),
		AND_I(R1, FLAG_SYN | FLAG_ACK),
		JUMP_EQ(R1, FLAG_SYN, L_SYN),
		JUMP_NE(R1, FLAG_SYN | FLAG_ACK, L_END),
		/* SYN/ACK of a request, which has no full socket: the option answers that of the SYN. */
		OPTION_ARGS(),
		MOV_I(R4, BPF_LOAD_HDR_OPT_TCP_SYN),
		CALL(load_hdr_opt),
		JUMP_GE(R0, 0, L_OURS),
		JUMP_EQ(R0, TOO_LONG, L_OURS),
		JUMP(L_END),
		LABEL(L_SYN),
		FIND_OURS(map),
		LABEL(L_OURS),
		PUT_OPTION(), /* over the found option: a longer one is not repeated */
		OPTION_ARGS(),
		MOV_I(R4, 0),
		LOAD_W(R5, R6, CTX(op)),
		/* Measured: reserve_hdr_opt(context, length, 0). */
		JUMP_EQ(R5, BPF_SOCK_OPS_WRITE_HDR_OPT_CB, L_STORE),
		MOV_I(R2, TCPOPT_SMCR_LEN),
		MOV_I(R3, 0),
		CALL(reserve_hdr_opt),
		JUMP(L_END),
		/* Written: store_hdr_opt(context, option, length, 0). */
		LABEL(L_STORE),
		CALL(store_hdr_opt),
		JUMP(L_END),

		/* The connection is established: a client checks the SYN/ACK, a server the saved SYN. An accepted
		 * socket has a copy of its listener's value. */
		LABEL(L_ESTABLISHED),
		FIND_OURS(map),
		MOV(R8, R0),
		PUT_OPTION(),
		OPTION_ARGS(),
		MOV(R4, R7),
		CALL(load_hdr_opt),
		MOV_I(R1, TCP_OPTION_WANTED | TCP_OPTION_KNOWN | TCP_OPTION_PEER),
		JUMP_GE(R0, 0, L_KNOWN),
		JUMP_EQ(R0, TOO_LONG, L_KNOWN),
		MOV_I(R1, TCP_OPTION_WANTED | TCP_OPTION_KNOWN),
		LABEL(L_KNOWN),
		STORE_W(R8, 0, R1),
		/* Segments with data need no callback. */
		LOAD_W(R2, R6, CTX(bpf_sock_ops_cb_flags)),
		AND_I(R2, ~CALL_ME),
		MOV(R1, R6),
		CALL(sock_ops_cb_flags_set),

		/* 1: continue (0 would refuse the call). */
		LABEL(L_END),
		MOV_I(R0, 1),
		EXIT(),
	};

	_Static_assert(sizeof(prog) <= TCP_OPTION_INSNS_MAX * sizeof(prog[0]), "room");
	return resolve(prog, sizeof(prog) / sizeof(prog[0]), out);
}
