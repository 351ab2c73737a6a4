"""
The few CLC messages (RFC 7609 A.2) that a test peer needs: one that declines, one that says what a Linux without an
RDMA device says, and reading whatever comes.
"""
import struct

from harness import check, recv_exact

EYE = bytes.fromhex("e2d4c3d9")
PROPOSAL, ACCEPT, CONFIRM, DECLINE = 1, 2, 3, 4
NO_DEVICE = 0x03030000		# what Linux answers without an RDMA device
PEER_ID = bytes.fromhex("5a5a525400010061")


def decline(diag=NO_DEVICE, out_of_sync=False):
    """28 bytes, version 1."""
    return EYE + struct.pack(">BHB8sIxxxx", DECLINE, 28, 0x10 | (8 if out_of_sync else 0), PEER_ID, diag) + EYE


def proposal():
    """As Linux 6.1 sends it: version 2 header, SMC-R version 1 offered, an area for SMC-D; RoCE only."""
    gid = bytes.fromhex("fe80000000000000505400fffe010061")
    mac = bytes.fromhex("525400010061")
    return (EYE + struct.pack(">BHB8s16s6sH", PROPOSAL, 92, 0x28, PEER_ID, gid, mac, 40) + bytes(40)
            + struct.pack(">4sBxxB", bytes([127, 0, 0, 0]), 8, 0) + EYE)


def read_message(s):
    """(type, whole message); never a byte more than the message."""
    head = recv_exact(s, 8)
    check(len(head) == 8 and head[:4] == EYE, f"a CLC message, not {head!r}")
    length = struct.unpack(">H", head[5:7])[0]
    return head[4], head + recv_exact(s, length - 8)
