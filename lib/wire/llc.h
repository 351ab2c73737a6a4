/* LLC messages: link control by RDMA Send on a link (RFC 7609 A.3), versions 1 and 2 as in Linux. Bytes <-> host
 * structs; pure. Version 2, an argument, has other type bytes, and lengths up to LLC_MAX_LEN. Lists stay in wire form:
 * a decoded message points into its input, and the caller of the encoder owns them. */
#pragma once

#include "base/span.h"

#define LLC_LEN 44 /* version 1: of each message; version 2: minimum */
#define LLC_MAX_LEN 8192
#define LLC_MAX_SENT_LEN (72 + LLC_MAX_PAIRS * LLC_PAIR_LEN) /* longest encoded message: ADD LINK of version 2 */
#define LLC_VERSION 1
#define LLC_VERSION_2 2
#define LLC_MAX_LINKS 8      /* in a link group, RFC 7609 A.3.5 */
#define LLC_PAIRS_PER_CONT 2 /* ADD LINK CONTINUATION */
#define LLC_LINKS_INLINE 2   /* CONFIRM RKEY, besides the link that carries it */
#define LLC_LINKS_PER_CONT 3 /* CONFIRM RKEY CONTINUATION */
#define LLC_MAX_DELETE_RKEYS 8
#define LLC_MAX_DELETE_RKEYS_V2 255
#define LLC_MAX_PAIRS 255 /* ADD LINK of version 2: RMBs of a link group */
#define LLC_MAX_GIDS 8    /* REQUEST ADD LINK */
#define LLC_TEST_LEN 16
#define LLC_RKEY_LEN 4  /* on the wire */
#define LLC_PAIR_LEN 16 /* struct llc_rkey_pair on the wire */

enum llc_type {
	LLC_CONFIRM_LINK = 1,
	LLC_ADD_LINK = 2,
	LLC_ADD_LINK_CONT = 3,
	LLC_DELETE_LINK = 4,
	LLC_REQUEST_ADD_LINK = 5, /* version 2: a client requests another link; version 1 uses ADD LINK for that */
	LLC_CONFIRM_RKEY = 6,
	LLC_TEST_LINK = 7,
	LLC_CONFIRM_RKEY_CONT = 8,
	LLC_DELETE_RKEY = 9,
};

/* ADD LINK reject reasons, A.3.2. */
#define LLC_REJECT_NO_ALT_PATH 1
#define LLC_REJECT_BAD_MTU 2

/* DELETE LINK reasons, A.3.4; the last two are for responses. */
#define LLC_DELETE_LOST_PATH 0x00010000u
#define LLC_DELETE_OPERATOR 0x00020000u
#define LLC_DELETE_PROGRAM 0x00030000u /* link inactivity */
#define LLC_DELETE_PROTOCOL 0x00040000u
#define LLC_DELETE_ASYM_NOT_NEEDED 0x00050000u
#define LLC_DELETE_UNKNOWN_LINK 0x00100000u
#define LLC_DELETE_UNKNOWN_GROUP 0x00200000u /* Linux */

struct llc_confirm_link {
	uint8_t mac[6];
	uint8_t gid[16];
	uint32_t qpn; /* 24 bits */
	uint8_t link_num;
	uint32_t link_uid; /* for display only */
	uint8_t max_links;
	uint8_t max_conns;  /* version 2, release 1 */
	bool no_eyecatcher; /* cursors start at 0, RMB elements have no eye catcher (Linux, flags 0x03) */
};

/* An RMB by its rkey on the link of the message, with rkey and address on the new link. */
struct llc_rkey_pair {
	uint32_t old_rkey;
	uint32_t new_rkey;
	uint64_t new_vaddr;
};

struct llc_add_link {
	uint8_t mac[6];
	uint8_t gid[16];
	uint32_t qpn; /* 24 bits */
	uint8_t link_num;
	uint8_t mtu_code;      /* 4 bits, unchecked: an invalid one is rejected later, see clc_mtu_bytes() */
	uint32_t psn;          /* 24 bits */
	uint16_t mpa_port;     /* iWARP groups of smcrd: port of the sending device, in reserved bytes; else 0 */
	bool rejected;         /* in a response */
	uint8_t reject_reason; /* 4 bits, LLC_REJECT_; absent in version 2: 0 */
	/* Version 2, not in a rejection: all RTokens of the sender, so that no CONTINUATION follows. */
	bool direct;            /* the new link needs no gateway */
	uint8_t client_gid[16]; /* request: GID of the port that the server wants to reach; Linux sends its own */
	uint8_t pair_cnt;       /* as received; may be fewer than Linux announces */
	const uint8_t *pairs;   /* pair_cnt x LLC_PAIR_LEN, see llc_pair_get() */
};

struct llc_request_add_link {
	uint8_t gid_cnt;     /* 1..LLC_MAX_GIDS; 0 in an answer without list */
	const uint8_t *gids; /* gid_cnt x 16, of the client's ports */
};

struct llc_add_link_cont {
	uint8_t link_num;
	uint8_t left_cnt;                               /* pairs left, those in this message included; may be 0 */
	struct llc_rkey_pair pairs[LLC_PAIRS_PER_CONT]; /* min(left_cnt, 2) of them */
};

struct llc_delete_link {
	uint8_t link_num; /* 0 with all */
	uint32_t reason;
	bool all;
	bool orderly;
};

struct llc_link_rkey {
	uint8_t link_num;
	uint32_t rkey;
	uint64_t vaddr;
};

struct llc_confirm_rkey {
	uint32_t rkey; /* on the link of the message */
	uint64_t vaddr;
	uint8_t other_cnt; /* total of further links, 0..7; above 2 in CONTs; version 2 without CONTs: 0..2 */
	struct llc_link_rkey others[LLC_LINKS_INLINE]; /* min(other_cnt, 2) of them */
	bool negative;                                 /* in a response */
	bool retry;                                    /* with negative: retry after the current configuration change */
};

struct llc_confirm_rkey_cont {
	uint8_t left_cnt;                                /* links left, those in this message included, 1..7 */
	struct llc_link_rkey others[LLC_LINKS_PER_CONT]; /* min(left_cnt, 3) of them */
	bool negative;
};

struct llc_delete_rkey {
	uint8_t cnt;         /* 1..8, in version 2 ..255 */
	uint8_t error_mask;  /* version 1, with negative: 0x80 is rkeys[0] and so on */
	uint8_t invalid_cnt; /* version 2, with negative: number of unknown rkeys */
	bool negative;       /* in a response */
	const uint8_t
	    *rkeys; /* cnt x LLC_RKEY_LEN, see llc_rkey_get(); NULL in version 2 responses: Linux zeroes them */
};

struct llc_test_link {
	uint8_t user_data[LLC_TEST_LEN];
};

struct llc_msg {
	enum llc_type type;
	bool response;
	bool little; /* version 2: 16-bit numbers are little-endian, as sent by Linux on such a machine */

	union {
		struct llc_confirm_link confirm_link;
		struct llc_add_link add_link;
		struct llc_add_link_cont add_link_cont;
		struct llc_request_add_link request_add_link;
		struct llc_delete_link delete_link;
		struct llc_confirm_rkey confirm_rkey;
		struct llc_confirm_rkey_cont confirm_rkey_cont;
		struct llc_delete_rkey delete_rkey;
		struct llc_test_link test_link;
	};
};

/* Element i of a list in wire form; i must be in range. */
uint32_t llc_rkey_get(const uint8_t *rkeys, unsigned i);
void llc_rkey_put(uint8_t *rkeys, unsigned i, uint32_t rkey);
struct llc_rkey_pair llc_pair_get(const uint8_t *pairs, unsigned i);
void llc_pair_put(uint8_t *pairs, unsigned i, const struct llc_rkey_pair *pair);

/* The version of the message's type byte, for callers that do not know the link group; 1 for an unknown type. */
unsigned llc_version_of(struct span in);

/* > 0: bytes used, all of `in`, one received Send; *out is filled, and its lists point into `in`. -EBADMSG: malformed.
 * -EOPNOTSUPP: an unknown type to be ignored (two high bits 10). -EPROTO: any other unknown type, a protocol error
 * (A.3), a CDC message, or a type of the other version. -ENOTSUP: unsupported `version`; equals -EOPNOTSUPP on Linux,
 * so pass LLC_VERSION or LLC_VERSION_2. *out is untouched unless > 0. */
int llc_decode(struct span in, unsigned version, struct llc_msg *out) __attribute__((warn_unused_result));

/* Bytes written (version 1: LLC_LEN, version 2: LLC_LEN..LLC_MAX_SENT_LEN). -EINVAL for a value out of range, a missing
 * list, or a type that `version` lacks; -ENOSPC; -ENOTSUP. On failure buf is untouched; it must not overlap a list. */
int llc_encode(const struct llc_msg *msg, unsigned version, uint8_t *buf, size_t cap)
    __attribute__((warn_unused_result));
