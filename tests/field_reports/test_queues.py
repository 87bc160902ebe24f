"""B04, B06's reader, B11, B18, B26, B44: queues, as users met them, in scripts.

`spawn` stands for `mp.spawn` with each start method; each report under each sharing strategy.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.field_reports.programs import check

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
    if sys.argv[1] == 'fork':
        is_told(lambda: mp.launch(prod, (q,), 2, start_method='fork', timeout=2), mp.TimeoutError, unread)
    ctx = spawn(prod, args=(q,), join=False); assert soon(lambda: ctx.ranks[0].is_unread, 30)
    ctx.processes[0].kill()
    is_told(ctx.join, mp.ProcessExitedException, 'waiting for its queue to be read')
    q = mp.Queue(); ctx = spawn(prod, args=(q,), join=False)
    assert [q.get(timeout=20) for _ in range(20_000)] == list(range(20_000)) and ctx.join(timeout=20)
"""


def test_b11_rank_that_waits_for_its_queue_to_be_read_is_told(method: str, tmp_path: Path) -> None:
    check(tmp_path, B11_SMALL, method, "file_descriptor")


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
