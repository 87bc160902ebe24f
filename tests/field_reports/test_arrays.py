"""B03, B04, B07, B11, B16, B18, B26, B28, B29, B33, and B06's reader: arrays and queues, as users met them, in scripts.

`spawn` stands for `mp.spawn` with each start method; each report under each sharing strategy.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

import nbmp
from tests import scripts
from tests.field_reports.conftest import MUST_RAISE
from tests.waiting import until

STRATEGIES = sorted(nbmp.get_all_sharing_strategies())

PRELUDE = """
    import gc, os, resource, signal, sys, threading, time
    import numpy as np
    import nbmp as mp
    from nbmp.memory.session import own_session
    def spawn(fn, args=(), nprocs=1, join=True):
        return mp.start_processes(fn, args=args, nprocs=nprocs, join=join, start_method=sys.argv[1])
    mp.set_sharing_strategy(sys.argv[2])
    def shm():  # names of segments in this session
        if sys.argv[2] == 'file_descriptor': return set()
        return {name for name in os.listdir(f'/dev/shm/{own_session().name}') if name[0].isdigit()}
    def fds(): return len(os.listdir('/proc/self/fd'))
    def soon(condition, seconds=10):
        end = time.time() + seconds
        while not condition() and time.time() < end:
            mp.trim(); gc.collect(); time.sleep(0.02)
        return condition()
""" + textwrap.indent(MUST_RAISE, "    ")


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(folder: Path, report: str, *arguments: str, before: Any = ()) -> None:
    done = scripts.run(folder, PRELUDE + report + "    print('good')\n", *arguments, before=before)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
    assert "resource_tracker" not in done.stderr
    assert "leaked" not in done.stderr
    assert "Exception ignored" not in done.stderr


B03 = """
    names = lambda: {*os.listdir('/dev/shm')}
    before = names()                                             # as reported: of any kind
    try:
        a = mp.share_memory(np.ones(1 << 20))                    # 8 MB
    except (MemoryError, OSError) as e:
        assert sys.argv[2] == 'file_system'
        assert '8388608' in str(e) or '8.0' in str(e) or '8 M' in str(e) or '8.4 MB' in str(e), e
        q = mp.Queue()
        must_raise(lambda: q.put(np.ones(1 << 20)), exc=(MemoryError, OSError))
    else:
        a += 1; assert a.sum() == 2 << 20
        q = mp.Queue(); q.put(np.ones(1 << 20)); assert q.get(timeout=5).sum() == 1 << 20
        del a
    assert names() == before
    a = mp.share_memory(np.ones(1000)); assert a.sum() == 1000
"""


def test_b03_array_larger_than_dev_shm(strategy: str, tmp_path: Path) -> None:
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may mount another /dev/shm")
    mount = 'mount -t tmpfs -o size=4m tmpfs /dev/shm && exec "$0" "$@"'
    check(tmp_path, B03, "fork", strategy, before=["unshare", "-m", "bash", "-c", mount])


B04 = """
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    def prod(rank, q, n, size):
        for i in range(n): q.put(np.full(size, i))
    for size, n in ((8, 3000), (12_500, 1000)):
        q = mp.Queue(); start = fds()
        ctx = spawn(prod, args=(q, n, size), nprocs=1, join=False)
        keep = [q.get(timeout=20) for _ in range(n)]
        assert all((a == i).all() and a.size == size for i, a in enumerate(keep))
        ctx.join(); del keep, ctx
        assert soon(lambda: fds() <= start + 5), (fds(), start)
"""


def test_b04_three_thousand_kept_arrays_under_a_limit_of_256(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B04, method, strategy)


B06 = """
    def reader(rank, q): q.get()
    q = mp.Queue(); ctx = spawn(reader, (q,), join=False)
    time.sleep(1); os.kill(ctx.pids()[0], signal.SIGKILL)
    assert ctx.processes[0].exitcode == -9 or soon(lambda: ctx.processes[0].exitcode == -9)
    q.put('x'); assert q.get(timeout=5) == 'x'
"""


def test_b06_a_reader_is_killed_inside_get(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B06, method, strategy)


B07 = """
    before = shm()
    a = mp.share_memory(np.arange(10))
    def look(rank, x): assert x.sum() == 45
    for _ in range(3): spawn(look, args=(a,), nprocs=2)     # attach, exit, attach again
    assert a.sum() == 45
    if sys.argv[2] == 'file_system': open('session', 'w').write(own_session().name)
    del a
    assert soon(lambda: shm() == before)
"""


def test_b07_readers_that_exit_remove_nothing_and_nothing_is_said(method: str, strategy: str, tmp_path: Path) -> None:
    """A folder without segments stays as long as the program: to make one for each array would cost a manager each."""
    check(tmp_path, B07, method, strategy)
    if strategy == "file_system":
        folder = Path("/dev/shm", (tmp_path / "session").read_text())
        assert until(lambda: not folder.exists(), 20)


B07_OF_PYTHON = """
    from multiprocessing.shared_memory import SharedMemory
    made = SharedMemory(create=True, size=100); made.buf[0] = 7
    def look(rank, name):
        found = SharedMemory(name=name); value = found.buf[0]; found.close()
        return value
    def make(rank):
        new = SharedMemory(create=True, size=100); new.close()
        return new.name
    for _ in range(2): assert mp.launch(look, (made.name,), 2, start_method=sys.argv[1]) == [7, 7]
    with mp.get_context(sys.argv[1]).Pool(1) as pool: assert pool.apply(look, (0, made.name)) == 7
    for name in [made.name, *mp.launch(make, (), 2, start_method=sys.argv[1])]:
        found = SharedMemory(name=name); found.close(); found.unlink()
    made.close()
"""


def test_b07_shared_memory_of_pythons_own_lives_as_long_as_the_program(method: str, tmp_path: Path) -> None:
    check(tmp_path, B07_OF_PYTHON, method, "file_descriptor")


B11 = """
    def prod(rank, q): q.put(np.zeros(2_000_000))            # 16 MB
    q = mp.Queue(); ctx = spawn(prod, args=(q,), nprocs=2, join=False)
    assert ctx.join(timeout=20) is True                      # array: must not need the reader
    assert all(q.get(timeout=5).size == 2_000_000 for _ in range(2))
    def prod2(rank, q): q.put('x' * 5_000_000)               # not an array
    ctx = spawn(prod2, args=(q,), nprocs=1, join=False)
    t = time.time(); done = ctx.join(timeout=3); assert time.time() - t < 6
    assert len(q.get(timeout=5)) == 5_000_000
    assert done or ctx.join(timeout=10)
"""


def test_b11_join_before_the_queue_is_drained(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B11, method, strategy)


B11_SMALL = """
    def prod(rank, q):
        for i in range(20_000): q.put(i)
    def is_told(run, kind, *texts):
        try: run()
        except kind as e:
            for text in texts: assert text in str(e) + ''.join(getattr(e, '_render_traceback_', list)()), (text, e)
        else: raise AssertionError('nothing raised')
    unread = 'ranks 0 and 1 waited for their queues to be read'
    q = mp.Queue(); ctx = spawn(prod, args=(q,), nprocs=2, join=False)
    assert ctx.join(timeout=0.5) is False                    # no hang
    assert soon(lambda: all(rank.is_unread for rank in ctx.ranks), 30)
    assert all('waits for its queue to be read' in rank.remark for rank in mp.status().groups[0].ranks)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    is_told(ctx.join, KeyboardInterrupt, unread)
    is_told(ctx.join, mp.ProcessExitedException, 'stopped', unread)
    is_told(lambda: mp.launch(prod, (q,), 2, start_method=sys.argv[1], timeout=4), mp.TimeoutError, unread)
    ctx = spawn(prod, args=(q,), join=False); assert soon(lambda: ctx.ranks[0].is_unread, 30)
    ctx.processes[0].kill()
    is_told(ctx.join, mp.ProcessExitedException, 'waiting for its queue to be read')
    q = mp.Queue(); ctx = spawn(prod, args=(q,), join=False)
    assert [q.get(timeout=20) for _ in range(20_000)] == list(range(20_000)) and ctx.join(timeout=20)
"""


def test_b11_rank_that_waits_for_its_queue_to_be_read_is_told(method: str, tmp_path: Path) -> None:
    check(tmp_path, B11_SMALL, method, "file_descriptor")


B15 = """
    s = mp.zeros(5 << 30, 'u1')                              # takes memory where it is written
    def write(rank, whole, end): whole[-1] = 3; end[0] = 4; return len(whole), len(end)
    found = mp.launch(write, (s, s[1 << 32:]), 2, start_method=sys.argv[1])
    assert found == [(5 << 30, 1 << 30)] * 2 and (s[-1], s[1 << 32]) == (3, 4)
    q = mp.Queue(); q.put(s[(1 << 32) - 1:]); x = q.get(timeout=5); assert (x[0], x[1], x[-1]) == (0, 4, 3)
"""


def test_b15_arrays_above_four_gib(method: str, tmp_path: Path) -> None:
    if psutil.virtual_memory().available < 6 << 30:
        pytest.skip("refused where there is not so much memory")
    check(tmp_path, B15, method, "file_descriptor")


B16 = """
    def fill(rank, a): a[rank] = rank + 1
    for n in (8, 8_000_000):
        s = mp.zeros((n,), 'f8'); assert mp.is_shared(s)
        spawn(fill, args=(s,), nprocs=2); assert s[0] == 1 and s[1] == 2
        p = np.zeros(n); assert not mp.is_shared(p)
        spawn(fill, args=(p,), nprocs=2)                     # must not raise
        first = p[0]
        if n == 8: small = first
    assert first == small                                    # same rule for both sizes
"""


def test_b16_writing_is_the_same_for_every_size(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B16, method, strategy)


B18 = """
    def prod(rank, q):
        for i in range(20): q.put(np.full(1000 if i % 2 else 50_000, i))
    def hop(rank, a, b): b.put(a.get(timeout=10) + 1)
    before = shm()
    q = mp.Queue(); spawn(prod, args=(q,), nprocs=1)
    time.sleep(1)
    got = [q.get(timeout=5) for _ in range(20)]
    assert all((g == i).all() for i, g in enumerate(got))
    a, b, c = mp.Queue(), mp.Queue(), mp.Queue()
    a.put(np.zeros(50_000)); spawn(hop, args=(a, b), nprocs=1); spawn(hop, args=(b, c), nprocs=1)
    assert (c.get(timeout=5) == 2).all()
    del got
    assert soon(lambda: shm() <= before)
"""


def test_b18_the_producer_ends_before_the_consumer_takes(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B18, method, strategy)


B26 = """
    q = mp.Queue()
    must_raise(lambda: q.put({'a': 1, 'lock': threading.Lock()}), 'lock', within=2)
    lst = [1]; q.put(lst); lst.append(2); assert q.get(timeout=5) == [1]
    shared = mp.zeros(3); q.put([shared]); shared[0] = 4; assert q.get(timeout=5)[0][0] == 4
    def child(rank, q):
        try: q.put(threading.Lock())
        except Exception as e: q.put([base.__name__ for base in type(e).__mro__])
    spawn(child, args=(q,), nprocs=1); assert {'TypeError', 'PicklingError'} <= {*q.get(timeout=5)}
"""


def test_b26_put_of_what_cannot_be_pickled(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B26, method, strategy)


B28 = """
    def helper(): return mp.zeros((1000, 100), 'f8')[10:20].T
    v = helper(); gc.collect(); v += 1; assert v.sum() == 1000
    def child(rank, q): a = mp.zeros((50,), 'i4'); a[:] = 7; q.put(a[::5])
    q = mp.Queue(); spawn(child, args=(q,), nprocs=1)
    w = q.get(timeout=5); gc.collect(); assert (w == 7).all() and w.shape == (10,)
    maps = lambda: sum('/dev/shm' in l or 'memfd' in l or 'nbmp' in l for l in open('/proc/self/maps'))
    m0 = maps(); big = mp.zeros((1 << 20,), 'u1'); s = big[5:6]; del big; gc.collect(); s[0] = 3; assert s[0] == 3
    del s; gc.collect(); assert maps() <= m0
"""


def test_b28_an_array_never_outlives_its_memory(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B28, method, strategy)


B29 = """
    big = mp.zeros((1000, 1000), 'f8')
    def touch(rank, q_in, q_out):
        x, y = q_in.get(timeout=10)
        x[0, 0] = 5; q_out.put((bool(y[0, 0] == 5), x.strides))
        q_out.put(x)                                          # send a received view on
    qi, qo = mp.Queue(), mp.Queue()
    for pick in (np.s_[10:14, ::250], np.s_[::-1, 3:4], np.s_[5:6, :]):
        big[:] = 0; x = big[pick]; qi.put((x, x[:1]))
        spawn(touch, args=(qi, qo), nprocs=1)
        same, strides = qo.get(timeout=5); back = qo.get(timeout=5)
        assert same and strides == x.strides and x[0, 0] == 5
        back[0, 0] = 6; assert x[0, 0] == 6
    plain = np.zeros(50_000_000)
    left = lambda: os.statvfs('/dev/shm').f_bavail * os.statvfs('/dev/shm').f_frsize
    free = left(); qi.put(plain[:10]); time.sleep(0.5)
    assert soon(lambda: free - left() < 5_000_000)  # other programs take and give back there
    assert qi.get(timeout=5).shape == (10,)
"""


def test_b29_views_travel_as_views_and_slices_cost_a_slice(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B29, method, strategy)


B33 = """
    cases = [np.array(3.5), np.zeros((0, 3), 'i2'), np.array(['2020-01-01', 'NaT'], 'M8[D]'),
             np.array([1, 2], 'm8[ms]'), np.arange(4, dtype='>f8'), np.array([True, False]),
             np.array(['ab', 'c'], 'U3'), np.array([b'x', b'yy'], 'S2'),
             np.zeros(3, [('t', 'M8[s]'), ('v', '>f4', (2,))]),
             np.zeros(2, np.dtype({'names': ['a'], 'formats': ['i4'], 'offsets': [4], 'itemsize': 12})),
             np.arange(3, dtype='c16'), np.arange(3, dtype='f2'), np.zeros(5, 'V7')]
    def echo(rank, qi, qo, n):
        for _ in range(n): qo.put(qi.get(timeout=10))
    def equal(a, b): return b.dtype == a.dtype and b.shape == a.shape and b.tobytes() == a.tobytes()
    qi, qo = mp.Queue(), mp.Queue()
    for a in cases:
        qi.put(a); qi.put(mp.share_memory(a))
    spawn(echo, args=(qi, qo, 2 * len(cases)), nprocs=1)
    for a in cases:
        assert equal(a, qo.get(timeout=5)) and equal(a, qo.get(timeout=5)) and equal(a, mp.share_memory(a)), a.dtype
    o = np.array(['text', {'k': 1}], dtype=object)
    qi.put(o); spawn(echo, args=(qi, qo, 1), nprocs=1)
    assert (qo.get(timeout=5) == o).all()
    must_raise(lambda: mp.share_memory(o), exc=TypeError)
    if hasattr(np.dtypes, 'StringDType'):
        o = np.array(['text', 'longer than sixteen bytes'], dtype=np.dtypes.StringDType())
        qi.put(o); spawn(echo, args=(qi, qo, 1), nprocs=1)
        assert (qo.get(timeout=5) == o).all()
        must_raise(lambda: mp.share_memory(o), exc=TypeError)
"""


def test_b33_every_kind_of_array(method: str, strategy: str, tmp_path: Path) -> None:
    check(tmp_path, B33, method, strategy)


B44 = """
    import socket
    def kids():
        return [int(pid) for task in os.listdir('/proc/self/task')
                for pid in open(f'/proc/self/task/{task}/children').read().split()]
    a = mp.zeros((10,), 'f8')
    def ok(rank): pass
    mp.start_processes(ok, nprocs=1, start_method='forkserver')
    lines = open('/proc/net/unix').read().splitlines()[1:]
    mine = set()
    for pid in [os.getpid(), *kids()]:
        for fd in os.listdir(f'/proc/{pid}/fd'):
            try: target = os.readlink(f'/proc/{pid}/fd/{fd}')
            except OSError: continue
            if target.startswith('socket:'): mine.add(target[8:-1])
    assert mine
    paths = [l.split()[7] for l in lines if len(l.split()) > 7 and l.split()[6] in mine]
    for p in paths:
        assert not p.startswith('@'), p
        assert os.stat(os.path.dirname(p)).st_mode & 0o077 == 0, p
        for junk in (b'', b'\\x80\\x04', os.urandom(300), b'\\xff' * 5000):
            s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(p)
            try: s.sendall(junk); s.shutdown(socket.SHUT_WR); s.recv(100)
            except OSError: pass
            s.close()
    a[:] = 1; b = mp.zeros((10,), 'f8'); mp.start_processes(ok, nprocs=1, start_method='forkserver')
    with mp.Manager() as manager:
        assert dict(manager.dict(a=1)) == {'a': 1}
        open('socket', 'w').write(manager.address)
        assert os.stat(os.path.dirname(manager.address)).st_mode & 0o077 == 0
"""


@pytest.mark.parametrize("deep", [False, True])
def test_b44_nobody_else_can_connect_and_a_deep_tmpdir_is_no_matter(deep: bool, strategy: str, tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200) if deep else tmp_path
    folder.mkdir(exist_ok=True)
    check(tmp_path, B44, "forkserver", strategy, before=["env", f"TMPDIR={folder}"])
    assert not Path((tmp_path / "socket").read_text()).parent.exists()
