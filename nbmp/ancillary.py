"""Descriptors in a packet (SCM_RIGHTS), and a bundle of more than one packet may carry.

bundle(fds) -> socket ── sent in a packet as its only descriptor ──> unbundle
  the descriptors wait in it, in packets of their own
"""

import array
import os
import socket
import stat
import struct
from collections.abc import Sequence

from nbmp.memory.descriptors import Owned, own_all
from nbmp.memory.room import make_room
from nbmp.pickling.parcel import MOST_ALONG, NONSENSE, broken, needs, told

FDS_PER_PACKET = 250  # the kernel's limit is 253 (SCM_MAX_FD)
ANCILLARY = socket.CMSG_SPACE(4 * (FDS_PER_PACKET + 3))
CUT_SHORT = "descriptors of a message were lost: the limit of open files (ulimit -n) is reached"
_TOTAL = struct.Struct("<I")

# As plain numbers: an operation on the enumeration's members costs as much as a system call.
PEEK = int(socket.MSG_PEEK)
RECEIVE = int(socket.MSG_CMSG_CLOEXEC)
CUT = int(socket.MSG_CTRUNC | socket.MSG_TRUNC)
RIGHTS = (int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS))


def numbers(rights: list[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors in what `recvmsg` returned."""
    return [number for level, kind, data in rights if (level, kind) == RIGHTS for number in array.array("i", data)]


def bundle(fds: Sequence[int]) -> socket.socket:
    """Return a socket in which these descriptors wait. Each of its packets tells how many they are."""
    carrier, filler = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with filler:
        for start in range(0, len(fds), FDS_PER_PACKET):
            packet = _TOTAL.pack(len(fds))
            filler.sendmsg(
                (packet,), ((*RIGHTS, array.array("i", fds[start : start + FDS_PER_PACKET])),), socket.MSG_DONTWAIT
            )
    return carrier


def unbundle(owned: list[Owned]) -> None:
    """Add all descriptors that wait in the socket `owned[0]`; those that it had already are in `owned` as well.

    Raises
    ------
    OpenFilesError
        When there is no room for all of them. They are still there then.
    BrokenMessageError
        When they do not all wait there already.
    """
    try:
        _unbundle(owned)
    except NONSENSE as error:
        raise told(error) from None


def _unbundle(owned: list[Owned]) -> None:
    if not stat.S_ISSOCK(os.fstat(owned[0].fileno()).st_mode):  # a duplicate of it would be nobody's
        raise broken("its descriptors are said to wait in what is no socket")
    with socket.socket(fileno=os.dup(owned[0].fileno())) as carrier:
        while packet := carrier.recv(_TOTAL.size, PEEK | socket.MSG_DONTWAIT):
            total = _TOTAL.unpack(packet)[0]
            if not len(owned) <= total <= MOST_ALONG:
                raise broken(f"it speaks of {total} descriptors")
            make_room(needs(0, 1 + total - len(owned)), carrier.fileno())
            _, rights, got, _ = carrier.recvmsg(_TOTAL.size, ANCILLARY, RECEIVE)
            own_all(numbers(rights), owned)
            if got & CUT:
                raise OSError(CUT_SHORT)
