"""B03, B07, B15, B16, B28, B29, B33: arrays, as users met them, in scripts.

`spawn` stands for `mp.spawn` with each start method; each report under each sharing strategy.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest

from tests.field_reports.programs import check
from tests.waiting import until

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
