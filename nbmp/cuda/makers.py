"""The processes whose memory and events are opened here: whether they run, and why something cannot be opened.

A driver keeps what it needs to open an event in a file that outlives a killed process: the event opens, and a stream
that waits for it waits for ever. So whether the maker runs is asked first, not only when the driver refuses.
"""

import os

from nbmp.errors import DeviceError
from nbmp.platforms.files import content

_ENDED = "that process has ended, and what it made with it. It must run until all of it is received"


def must_run(what: str, maker: int) -> None:
    """Raise DeviceError when the process has ended that made this."""
    if not runs(maker):
        raise DeviceError(f"{what} cannot be opened here: {_ENDED}")


def why_not(what: str, maker: int, error: RuntimeError) -> str:
    """Return why the driver did not open this, and what helps."""
    text = f"{what} cannot be opened here ({error})"
    if not runs(maker):
        return f"{text}: {_ENDED}"
    if "PeerAccess" in str(error):
        return f"{text}: this process may not access that GPU. Use it on a GPU that may, or send cupy.asnumpy(array)"
    if "AlreadyMapped" in str(error):
        return f"{text}: another library has opened it in this process. Let only one of them receive it"
    return (
        f"{text}. Both must be processes of this machine, in containers with the same --ipc and --pid namespaces; "
        "memory of Tegra boards, and of WSL of old, cannot be shared so"
    )


def runs(pid: int) -> bool:
    """Return whether this process still has what it made; one that has ended and was not waited for has not.

    Asked of its first thread: a killed process is that one's zombie before its other threads have ended.
    """
    fields = content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return fields[0] not in (b"Z", b"X") if fields else os.path.exists(f"/proc/{pid}")
