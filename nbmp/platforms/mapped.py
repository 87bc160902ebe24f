"""How much of nbmp's shared memory a process has mapped, read from /proc. Cheap enough to be asked of many ranks."""

from collections.abc import Iterator

_OURS = b"nbmp-"
_NOT_DATA = (b"-board", b"-stacks")
"""What every rank has mapped, for nbmp's own use."""


def shared_bytes(pid: int) -> int:
    """Return how many bytes of shared memory a process has mapped, each piece of it once.

    Raises
    ------
    OSError
        When the process is gone, is somebody else's, or the system does not tell.
    """
    with open(f"/proc/{pid}/maps", "rb") as maps:
        content = maps.read()
    ends: dict[bytes, int] = {}
    for line in _lines(content):
        addresses, _, offset, device, inode, path = line.split(None, 5)
        if not any(name in path for name in _NOT_DATA):
            start, end = (int(address, 16) for address in addresses.split(b"-"))
            piece = device + inode
            ends[piece] = max(ends.get(piece, 0), int(offset, 16) + end - start)
    return sum(ends.values())


def _lines(content: bytes) -> Iterator[bytes]:
    """Return the lines with a file of ours; a process has hundreds of others, which are not looked at one by one."""
    at = content.find(_OURS)
    while at >= 0:
        end = content.find(b"\n", at)
        line = content[content.rfind(b"\n", 0, at) + 1 : end]
        if b"/memfd:nbmp-" in line or b"/dev/shm/nbmp-" in line:
            yield line
        at = content.find(_OURS, end)
