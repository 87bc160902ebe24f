"""Few descriptors: what is received can be kept, what is put arrives, nothing is lost. Not as root, who is exempt."""

from __future__ import annotations

import pytest

from tests import unprivileged

LIMITS = ["64 64", "64 4096", "256 256"]
PRELUDE = """
    import errno, os, resource, sys, threading, time
    import numpy as np
    import nbmp
    soft, hard = map(int, sys.argv[1].split())
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    def used(): return len(os.listdir("/proc/self/fd"))
    def settled(most):
        until = time.monotonic() + 10
        while used() > most and time.monotonic() < until:
            nbmp.trim()
            time.sleep(0.02)
        return used()
    def produce(rank, q, count, size):
        for i in range(count): q.put(np.full(size, i, "i4"))
"""


KEPT = (
    PRELUDE
    + """
    nbmp.set_sharing_strategy(sys.argv[2])
    nbmp.zeros(100_000)  # joins a session, for good
    q, start = nbmp.Queue(), used()
    context = nbmp.start_processes(produce, (q, 1000, 25_000), join=False, start_method="fork")
    keep = [q.get(timeout=60) for _ in range(1000)]
    assert all((array == i).all() and array.flags.writeable for i, array in enumerate(keep))
    assert used() < soft - 5 and resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    open("/dev/null").close()
    assert context.join(60)
    del keep, context
    print(settled(start) <= start)
"""
)


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("limits", LIMITS)
def test_a_thousand_received_arrays_of_100_kb_are_kept(limits: str, strategy: str) -> None:
    assert unprivileged.output(KEPT, limits, strategy) == "True\n"


UNREAD = (
    PRELUDE
    + """
    nbmp.set_sharing_strategy(sys.argv[2])
    nbmp.zeros(100_000)  # joins a session, for good
    q, start = nbmp.Queue(), used()
    for i in range(400): q.put(np.full(25_000, i, "i4"))
    open("/dev/null").close()
    keep = [q.get(timeout=60) for _ in range(400)]
    assert all((array == i).all() for i, array in enumerate(keep))
    assert q.empty() and q.qsize() == 0
    del keep
    q.close(); q.join_thread()
    print(settled(start) <= start)
"""
)


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("limits", LIMITS)
def test_four_hundred_unread_arrays_wait_and_arrive_in_order(limits: str, strategy: str) -> None:
    assert unprivileged.output(UNREAD, limits, strategy) == "True\n"


TWO = (
    PRELUDE
    + """
    mine, others = nbmp.Queue(), nbmp.Queue()
    for i in range(300): mine.put(np.full(25_000, i, "i4"))
    context = nbmp.start_processes(produce, (others, 300, 25_000), join=False, start_method=sys.argv[2])
    for queue in (mine, others):
        for i in range(300): assert (queue.get(timeout=60) == i).all()
    assert context.join(60)
    for i in range(300): mine.put(np.full(25_000, i, "i4"))
    assert nbmp.launch(lambda rank: np.full(25_000, rank), (), 2, start_method=sys.argv[2])[1][0] == 1
    with nbmp.Pool(2, start_method=sys.argv[2]) as pool:
        assert [a[0] for a in pool.map(lambda a: a + 1, [np.full(25_000, i) for i in range(100)])] == [*range(1, 101)]
    for i in range(300): assert (mine.get(timeout=60) == i).all()
    print("good")
"""
)


@pytest.mark.parametrize("limits", LIMITS)
def test_too_many_under_way_stop_no_other_process_no_launch_and_no_pool(limits: str, method: str) -> None:
    assert unprivileged.output(TWO, limits, method) == "good\n"


SHARED = (
    PRELUDE
    + """
    q = nbmp.Queue()
    arrays = [nbmp.full(25_000, i, "i4") for i in range(6)]
    for array in arrays: q.put(array)
    del arrays, array
    taken = [os.dup(0) for _ in range(soft - used())]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    for _ in range(3):
        try:
            q.get(timeout=5)
        except nbmp.OpenFilesError as error:
            assert error.errno == errno.EMFILE and f"may have {soft}" in str(error), error
        else:
            raise AssertionError("there was room")
    assert q.qsize() == 6
    for fd in taken: os.close(fd)
    assert [int(q.get(timeout=5)[7]) for _ in range(6)] == list(range(6))
    print("good")
"""
)


def test_shared_array_without_a_descriptor_for_it_is_an_error_and_stays_in_the_queue() -> None:
    assert unprivileged.output(SHARED, "64 64") == "good\n"


BUNDLE = (
    PRELUDE
    + """
    q = nbmp.Queue()
    child = os.fork()
    if child == 0:
        q.put([nbmp.full(25_000, i, "i4") for i in range(2_000)])
        q.put("next")
        q.close(); q.join_thread()
        os._exit(0)
    taken = [os.dup(0) for _ in range(3_000)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    for _ in range(3):
        try:
            q.get(timeout=60)
        except nbmp.OpenFilesError:
            pass
        else:
            raise AssertionError("there was room")
    for fd in taken: os.close(fd)
    arrays = q.get(timeout=60)
    assert [int(array[7]) for array in arrays] == list(range(2_000))
    assert q.get(timeout=60) == "next"
    assert os.waitpid(child, 0)[1] == 0
    print("good")
"""
)


def test_two_thousand_descriptors_in_one_message_wait_until_there_is_room_for_them() -> None:
    assert unprivileged.output(BUNDLE, "6000 6000") == "good\n"


ANY = (
    PRELUDE
    + """
    q = nbmp.Queue(5)
    reader, writer = nbmp.Pipe()
    for size in (1, 25_000):
        for step in range(40):
            try:
                taken = [os.dup(0) for _ in range(max(0, soft - used() - step))]
                try: q.put(np.full(size, step), timeout=0.01)
                except (nbmp.OpenFilesError, OSError) as error: assert error.errno == errno.EMFILE
                except Exception as error: assert type(error).__name__ == "Full", error
                try: reader.send(np.full(size, step))
                except OSError as error: assert error.errno == errno.EMFILE
            finally:
                for fd in taken: os.close(fd)
            got = [q.get(timeout=5) for _ in range(q.qsize())]
            assert all((array == step).all() and len(array) == size for array in got), got
            if writer.poll(): assert (writer.recv() == step).all()
    print("good", q.empty())
"""
)


def test_at_any_number_of_free_descriptors_put_does_it_whole_or_says_why_not() -> None:
    assert unprivileged.output(ANY, "64 64") == "good True\n"
