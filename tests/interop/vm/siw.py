"""
In the guest: cards of the kernel's soft iWARP, siw, whose MPA and TCP are the kernel's, on the wires of rxe.py. siw.sh
makes the module, with parameters that Debian's source has as constants.
"""
import rxe

# MPA's kinds of RTR (RFC 6581) as siw's parameter has them.
RTR_WRITE, RTR_READ = 0x80, 0x40
AS_BUILT = {"peer_to_peer": False, "mpa_crc_required": False, "mpa_version": 2, "rtr_type": RTR_WRITE | RTR_READ,
            "reply_gap": 0, "bad_crc": False}


def device(side, i):
    return f"sw{side}{i}"


class Wires(rxe.Wires):
    """Pairs joined by wires, with a siw device at both ends."""

    TYPE, MODULES = "siw", ("ib_uverbs", "rdma_ucm", "crc32c_generic", "siw")

    def __init__(self, t, pairs=1, **parameters):
        super().__init__(t, pairs)
        self.parameters(**{**AS_BUILT, **parameters})

    name = staticmethod(device)

    @staticmethod
    def parameters(**values):
        """Holds for connections that are made from now on."""
        for name, value in values.items():
            with open(f"/sys/module/siw/parameters/{name}", "w", encoding="ascii") as f:
                f.write(str(int(value)))
