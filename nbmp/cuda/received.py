"""Memory of other processes in this one: opened once for each allocation, closed when nothing here uses it any more.

    array, view ── CuPy's memory object ── owner ──> Use ──> opened allocation
                                                      └───> lease

    whoever receives       opens the allocation unless it is open, makes a Use for each block of it
    nbmp-cuda              waits for Uses that have died. Then it waits until the device is done with what was asked of
                           it, closes the allocation if no Use of it is left, and only then ends the lease. The Use
                           that died last is given a moment: see LINGER_SECONDS

So the memory is closed before its producer may free it, and is not given back under a kernel that still runs. A
Use dies in any thread, at any bytecode; all that happens there is a call into C (`SimpleQueue.put`, made for that).
What the driver has opened is entered here by a thread that no KeyboardInterrupt reaches: it would stay open for ever.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from weakref import ref

from nbmp import threads
from nbmp.cuda import driver
from nbmp.cuda.devices import device_of, shown
from nbmp.cuda.makers import must_run, why_not
from nbmp.errors import DeviceError
from nbmp.memory.descriptors import Owned
from nbmp.memory.mappings import Key
from nbmp.memory.weakly import WeakTable

_log = logging.getLogger("nbmp")


class Allocation(NamedTuple):
    """What receivers are told of an allocation of the driver's."""

    handle: bytes
    size: int
    device: bytes
    """UUID."""
    producer: int
    """Its pid."""


class Opened(NamedTuple):
    """An allocation of another process, open in this one."""

    base: int
    device: int
    allocation: Allocation


class Use:
    """Keeps a block of memory, for CuPy: the owner of its memory object."""

    __slots__ = ("__weakref__", "about", "lease", "opened")

    def __init__(self, opened: Opened, lease: Owned, about: tuple[Any, ...]) -> None:
        self.opened = opened
        self.lease = lease
        self.about = about
        """What came with it, to send it on."""

    @property
    def base(self) -> int:
        return self.opened.base


class _Held(NamedTuple):
    """What outlives a Use for a moment."""

    opened: Opened
    lease: Owned


LINGER_SECONDS = 0.1
"""How long the last use of a block is over before its allocation is closed and its lease ends."""

_uses: WeakTable[Use] = WeakTable()
_held: "dict[ref[Use], _Held]" = {}
_opened: dict[bytes, Opened] = {}
_dead: "SimpleQueue[Any]" = SimpleQueue()
"""References to Uses that have died; a function to be called in between."""
_lock = threading.RLock()
_is_seen_to = False
"""Whether a thread of ours waits for them."""


def use(key: Key, lease: Owned, about: tuple[Any, ...], allocation: Allocation, end: int) -> Use:
    """Return the use of a block, which is the same for all arrays in it; `end` is where in the allocation it ends.

    Raises
    ------
    DeviceError
        When its device is not visible here, its process has ended, or the driver does not open it.
    """
    make = partial(_use, key, lease, about, allocation, end)
    if allocation.handle in _opened or threading.current_thread() is not threading.main_thread():
        return make()
    return _uninterrupted(make)


def _use(key: Key, lease: Owned, about: tuple[Any, ...], allocation: Allocation, end: int) -> Use:
    with _lock:
        found = _uses.get(key)
        if found is None:
            opened = _open(allocation, end)
            found = Use(opened, lease, about)
            _held[ref(found, _dead.put)] = _Held(opened, lease)
            _uses.put(key, found)
        _see_to_the_end()
        return found


def _uninterrupted(make: Callable[[], Use]) -> Use:
    """Return `make()`, called in a thread of its own, which no interrupt reaches."""
    made: list[Use] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            made.append(make())
        except Exception as error:
            errors.append(error)
        finally:
            done.release()

    done = threading.Lock()
    done.acquire()
    threads.start(work, name="nbmp-cuda-open")
    done.acquire()
    if errors:
        raise errors.pop()
    return made.pop()


def _open(allocation: Allocation, end: int) -> Opened:
    opened = _opened.get(allocation.handle)
    if opened is None:
        device = device_of(allocation.device)
        what = f"memory of process {allocation.producer} on {shown(allocation.device)}"
        must_run(what, allocation.producer)
        try:
            with driver.beside_captures():
                base = driver.open_memory(allocation.handle, device)
        except RuntimeError as error:
            raise DeviceError(why_not(what, allocation.producer, error)) from error
        opened = _opened[allocation.handle] = Opened(base, device, allocation)
    if end > allocation.size:
        raise DeviceError(f"{end} bytes of an allocation of {allocation.size} were sent: the message is damaged")
    return opened


def opened_event(handle: bytes, device: bytes, maker: int) -> int:
    """Return an event of another process, opened on its device; the caller destroys it.

    Raises
    ------
    DeviceError
        When its device is not visible here, its process has ended, or the driver does not open it.
    """
    number = device_of(device)
    what = f"an event of process {maker} on {shown(device)}"
    must_run(what, maker)
    try:
        return driver.open_event(handle, number)
    except RuntimeError as error:
        raise DeviceError(why_not(what, maker, error)) from error


def owned_by(memory: Any) -> Use | None:
    """Return the use that a CuPy memory object belongs to, None for memory that was not received."""
    owner = getattr(memory, "_owner", None)
    return owner if isinstance(owner, Use) else None


def around(pointer: int) -> Use | None:
    """Return the use of the received block that this address lies in: other libraries wrap it in objects of theirs."""
    if not _opened:
        return None
    for found in _uses.alive():
        start, size = found.base + found.about[-2], found.about[-1]
        if start <= pointer < start + size:
            return found
    return None


def blocks() -> list[Use]:
    """Return what is used at this moment."""
    return _uses.alive()


def settle() -> None:
    """Wait until all that has died by now is given back."""
    with _lock:
        if not _is_seen_to:
            return
        done = threading.Lock()
        done.acquire()
        _dead.put(done.release)
    done.acquire()


def _see_to_the_end() -> None:
    global _is_seen_to
    if not _is_seen_to:
        threads.start(_give_back, name="nbmp-cuda")
        _is_seen_to = True


def _give_back() -> None:
    with driver.beside_captures():
        _give_back_until_all_is()


def _give_back_until_all_is() -> None:
    global _is_seen_to
    latest: list[Any] = []
    while True:
        calls, gone = _next(latest)
        if not calls and gone != latest:
            latest = [gone.pop()]
        else:
            latest = []
        for device in _devices(gone):
            _tried(driver.finish, device)
        with _lock:
            _end_leases(gone)
            ends = not _held and _dead.empty()
            if ends:
                _is_seen_to = False
        for call in calls:
            call()
        if ends:
            return


def _next(latest: list[Any]) -> tuple[list[Callable[[], None]], list[Any]]:
    """Return what has died, `latest` included, once something has, or after `LINGER_SECONDS`; and what is to be called.

    The latest one waits: if more of its allocation comes meanwhile, that need not be closed and opened again.
    """
    new: list[Any] = []
    with contextlib.suppress(Empty):
        new.append(_dead.get(timeout=LINGER_SECONDS if latest else None))
        while True:
            new.append(_dead.get_nowait())
    return [item for item in new if not isinstance(item, ref)], [*latest, *(i for i in new if isinstance(i, ref))]


def _devices(gone: list[Any]) -> set[int]:
    """Return where these Uses were. A function: a variable of the loop above would keep the last lease."""
    found = [_held.get(item) for item in gone]
    return {held.opened.device for held in found if held is not None}


def _end_leases(gone: list[Any]) -> None:
    """Close allocations that are not used any more, then end the leases of these Uses.

    They are dropped, not closed: a message whose reading was interrupted is read again, by the same leases.
    """
    over = [_held.pop(item, None) for item in gone]
    used = {held.opened.allocation.handle for held in _held.values()}
    for handle in [handle for handle in _opened if handle not in used]:
        opened = _opened.pop(handle)
        _tried(driver.close_memory, opened.base, opened.device)
    del over


def _tried(call: Callable[..., None], *arguments: Any) -> None:
    try:
        call(*arguments)
    except RuntimeError:  # the device has failed, or the process ends: nothing is to be saved any more
        _log.debug("memory of another process could not be given back in order", exc_info=True)


def _forget() -> None:
    """In a forked child: the parent holds the leases, and nothing of CUDA works here."""
    global _lock, _dead, _is_seen_to
    for held in _held.values():
        held.lease.close()
    _useless.append((_held.copy(), _opened.copy()))
    _held.clear()
    _opened.clear()
    _uses.clear()
    _lock, _dead, _is_seen_to = threading.RLock(), SimpleQueue(), False


_useless: list[Any] = []
os.register_at_fork(after_in_child=_forget)
