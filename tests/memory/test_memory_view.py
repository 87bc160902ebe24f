"""The view of shared memory: arrays by the names of variables, where they are, who has them; what it says in words."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.memory.leftovers import Leftover
from nbmp.monitoring.memory import text as memory_text
from nbmp.monitoring.memory.holders import Holders, numbers
from nbmp.monitoring.memory.named_arrays import INSIDE, named_arrays
from nbmp.monitoring.memory.remarks import remarks
from nbmp.monitoring.memory.rows import MemoryRow
from nbmp.monitoring.memory.usage import MemoryUsage, Room
from nbmp.monitoring.memory.view import MemoryView, memory_view
from tests.launching import functions
from tests.strategies import ONLY_BY_DESCRIPTOR
from tests.waiting import tell, until

SIZE = 200_003
"""Elements of an array that has a segment of its own."""


def view(**names: object) -> MemoryView:
    holders = Holders("notebook")
    holders.look({})
    return memory_view(names, holders)


def row(found: MemoryView, name: str) -> MemoryRow:
    (one,) = [row for row in found.rows if name in row.names]
    return one


def of_kind(found: MemoryView, kind: str) -> list[MemoryRow]:
    return [row for row in found.rows if row.kind == kind]


def test_an_array_has_its_name_shape_dtype_and_size(strategy: str) -> None:
    weights = nbmp.zeros((SIZE, 2), "f4")
    weights[:] = 1
    (found,) = view(weights=weights, private=np.ones(SIZE)).arrays
    assert found[:5] == ("array", ("weights",), 1, (SIZE, 2), "float32")
    assert found.bytes == SIZE * 8
    assert found.taken == SIZE * 8
    assert found.mapped_by == "notebook"


def test_views_of_an_array_are_named_with_it_the_largest_first() -> None:
    images = nbmp.ones((SIZE, 4), "u1")
    found = view(half=images[::-2], flat=images.reshape(-1), images=images, last=images[-1]).arrays
    assert [row.names for row in found] == [("flat", "images", "half", "last")]
    half = view(half=images[::2]).arrays[0]
    assert (half.names, half.shape, half.bytes) == (("half",), ((SIZE + 1) // 2, 4), SIZE * 4)


def test_small_arrays_in_one_segment_have_a_row_each() -> None:
    first, second = nbmp.ones(10), nbmp.ones(20)
    found = view(first=first, second=second, part=second[5:]).arrays
    assert [(row.names, row.bytes) for row in found] == [(("second", "part"), 160), (("first",), 80)]


def test_arrays_in_lists_dictionaries_frames_and_objects_are_named_as_one_writes_it() -> None:
    pandas = pytest.importorskip("pandas")
    x, y, z = nbmp.zeros(SIZE), nbmp.zeros(SIZE), nbmp.zeros((SIZE, 2))
    thing = type("Thing", (SimpleNamespace,), {"__module__": "__main__"})(weights=z)
    found = view(
        batch=[x, 7, y],
        table={"x": x, 3: y, (1, 2): z},
        frame=pandas.DataFrame({"x": x, "y": y}, copy=False),
        thing=thing,
    )
    assert [row.names for row in found.arrays] == [
        ("thing.weights",),
        ("batch[0]", "table['x']", "frame['x']"),
        ("batch[2]", "table[3]", "frame['y']"),
    ]
    assert {row.shape for row in found.arrays} == {(SIZE,), (SIZE, 2)}


def test_spare_names_are_for_arrays_without_another_one() -> None:
    first, second = nbmp.zeros(SIZE), nbmp.zeros(SIZE)
    holders = Holders()
    found = memory_view({"first": first}, holders, spare={"Out[3]": first[1:], "Out[4]": second[1:]})
    assert {row.names for row in found.arrays} == {("first",), ("Out[4]",)}


def test_many_arrays_alike_in_one_list_are_one_row() -> None:
    batches = [nbmp.zeros(SIZE) for _ in range(6)]
    (found,) = view(batches=batches).arrays
    assert (found.number, found.bytes) == (6, 6 * SIZE * 8)
    assert memory_text.name(found) == ("batches[0] … [5]", "6 arrays")


def test_a_bounded_number_of_things_is_looked_at() -> None:
    found = named_arrays({"many": [np.ones(1)] * 10_000, "after": {"x": np.ones(1)}})
    assert len(found) == INSIDE + 1
    assert found[-1].name == "after['x']"


def test_none_of_the_users_code_runs() -> None:
    class Loud(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError

    class Proxy:
        def __getattribute__(self, name: str) -> Any:  # `isinstance` asks for `__class__`
            raise AssertionError

    names = {"loud": Loud(x=np.ones(3)), "proxy": Proxy(), "empty": np.ones((0, 3)), "array": np.ones(2)}
    assert [array.name for array in named_arrays(names)] == ["loud['x']", "array"]


def test_an_array_that_no_variable_holds_is_counted() -> None:
    hidden = [[nbmp.zeros(SIZE)], [nbmp.zeros(SIZE)]]
    before = of_kind(view(hidden=hidden), "unnamed")
    assert sum(row.number for row in before) >= 2
    assert sum(row.bytes for row in before) >= 2 * SIZE * 8
    del hidden


def test_arrays_of_other_processes_alone_are_counted_by_size(tmp_path: Path) -> None:
    context = functions.begin(hold, (str(tmp_path), None, None), 2, "fork")
    assert until(lambda: all((tmp_path / str(rank)).exists() for rank in range(2)))
    found = {row.bytes: row for row in of_kind(view(), "elsewhere")}
    tell(tmp_path / "go", "")
    assert context.join()
    for rank in range(2):
        row = found[SIZE + 1 + rank]
        assert (row.number, row.made_in, row.mapped_by) == (1, f"by rank {rank}", f"rank {rank}")


@ONLY_BY_DESCRIPTOR
def test_a_message_is_under_way_then_named_then_cached() -> None:
    nbmp.trim()
    q = nbmp.Queue()
    q.put(np.ones(SIZE))
    (found,) = of_kind(view(), "message")
    assert (found.number, found.made_in, found.mapped_by) == (1, "from notebook", "")
    assert SIZE * 8 <= found.bytes < SIZE * 8 + 4096
    first = q.get(timeout=5)
    (got,) = view(first=first).arrays
    assert (got.names, got.made_in) == (("first",), "from notebook")
    assert of_kind(view(first=first), "message") == []
    del first
    after = view()
    assert (after.own_cached, after.arrays) == (found.bytes, [])
    assert [(row.number, row.bytes) for row in of_kind(after, "cached")] == [(1, found.bytes)]
    nbmp.trim()
    assert (view().own_cached, of_kind(view(), "cached"), of_kind(view(), "message")) == (0, [], [])


def hold(rank: int, folder: str, array: Any, queue: Any) -> None:
    own = nbmp.full(SIZE + 1 + rank, 1, "u1")
    if queue is not None:
        queue.put(own)
    tell(f"{folder}/{rank}", "")
    functions.wait_for(rank, f"{folder}/go")
    del own


def test_ranks_that_have_it_mapped_are_named(method: str, tmp_path: Path, strategy: str) -> None:
    array = nbmp.zeros(SIZE, "u1")
    q = nbmp.Queue()
    context = functions.begin(hold, (str(tmp_path), array, q), 3, method)
    got = [q.get(timeout=20) for _ in range(3)]
    assert until(lambda: all((tmp_path / str(rank)).exists() for rank in range(3)))
    own = min(got, key=len)
    found = view(array=array, own=own)
    tell(tmp_path / "go", "")
    assert context.join()
    assert row(found, "array").mapped_by == "notebook, ranks 0\N{EN DASH}2"
    assert (row(found, "own").made_in, row(found, "own").mapped_by) == ("by rank 0", "notebook, rank 0")


def test_processes_are_told_apart_by_launch_when_several_run() -> None:
    first = functions.begin(functions.wait_for, ("go",), 2, "fork")
    second = functions.begin(functions.wait_for, ("go",), 1, "fork")
    try:
        holders = Holders()
        holders.look({first.number: "train"})
        pids = [os.getpid(), 1, *(pid or 0 for pid in first.pids())]
        told = holders.text(pids)
        assert told == "this process, ranks 0 1 of train, pid 1"
    finally:
        second.stop(0)
        first.stop(0)
    holders.look({first.number: "train"})
    assert holders.text(pids) == told.replace(" of train", ""), "who has ended is remembered"


def test_numbers_that_follow_each_other_are_a_range() -> None:
    assert numbers([5, 0, 1, 2, 3, 7, 8]) == "0\N{EN DASH}3 5 7 8"
    assert numbers([4]) == "4"


def test_what_dead_sessions_left_is_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbmp import platforms
    from nbmp.memory import leftovers, manager

    monkeypatch.setattr(platforms, "shared_memory_folder", lambda: str(tmp_path))
    dead, alive, managed = (tmp_path / f"nbmp-{os.geteuid()}-{name}" for name in ("0dead", "a11fe", "bad"))
    others = tmp_path / f"nbmp-{os.geteuid() + 1}-0"
    for folder in (dead, alive, managed, others):
        folder.mkdir()
        (folder / "1-array-0123456789abcdef").write_bytes(bytes(100_000))
        (folder / manager.SIGN).touch()
    session = os.open(alive, os.O_RDONLY)
    sign = os.open(managed / manager.SIGN, os.O_RDWR)
    try:
        fcntl.flock(session, fcntl.LOCK_SH)
        manager.lock_byte(sign, 0)
        (found,) = leftovers.leftovers()
        assert found.name == dead.name
        assert found.bytes >= 100_000
        assert leftovers.remove_leftovers() == [found]
        assert not dead.exists()
        assert (alive / "1-array-0123456789abcdef").exists()
        assert leftovers.leftovers() == []
    finally:
        os.close(session)
        os.close(sign)


def usage(**given: Any) -> MemoryUsage:
    about: Mapping[str, Any] = {
        "segments": (),
        "processes": (1,),
        "hidden": (),
        "dev_shm": Room(64 << 20, 0),
        "control_group": None,
        "available": 1 << 60,
    }
    return MemoryUsage(**{**about, **given})


def test_remarks_say_what_will_go_wrong_and_what_to_do() -> None:
    assert list(remarks(usage(), "file_descriptor", ())) == []
    (small,) = remarks(usage(), "file_system", ())
    assert small.startswith("/dev/shm has only 67 MB, and file_system arrays live there: make it larger")
    (full,) = remarks(usage(dev_shm=Room(10**9, 10**9 - 10**6)), "file_system", ())
    assert full.startswith("/dev/shm is full: 1 MB of 1.0 GB are left")
    (short,) = remarks(usage(control_group=Room(2 * 10**9, 19 * 10**8), available=10**8), "file_descriptor", ())
    assert short.startswith("memory is short: 100 MB of the 2.0 GB of this container are left")
    (machine,) = remarks(usage(available=1000), "file_descriptor", ())
    assert machine.startswith("memory is short: this machine has 1 kB left")
    left = [Leftover("a", 10**7), Leftover("b", 10**6)]
    assert list(remarks(usage(), "file_descriptor", left)) == [
        "11 MB in /dev/shm are left of 2 sessions that died: %mpshm --clean removes them"
    ]
    (hidden,) = remarks(usage(hidden=(7,)), "file_descriptor", ())
    assert "pid 7" in hidden


def test_text_has_totals_places_and_a_line_for_what_is_left_out(strategy: str) -> None:
    arrays = {f"a{number}": nbmp.zeros(SIZE + 8 * number) for number in range(5)}
    lines = memory_text.view_table(view(**arrays), 3).split("\n")
    assert lines[0].startswith("shared memory: in use ")
    assert strategy in lines[1]
    head = next(number for number, line in enumerate(lines) if line.startswith("name "))
    assert [line.split()[0] for line in lines[head + 1 : head + 4]] == ["a4", "a3", "a2"]
    assert "and 2 smaller arrays, 3 MB together" in lines
    assert "and a smaller array, 2 MB" in memory_text.view_table(view(**arrays), 4).split("\n")
    assert memory_text.NOTHING not in memory_text.view_table(view(**arrays), 0)
    assert "a0" in memory_text.view_table(view(**arrays), None)


def test_a_view_is_plain_data_and_prints_without_arrays() -> None:
    found = view()
    assert pickle.loads(pickle.dumps(found)) == found
    empty = found.__class__(**{**vars(found), "rows": ()})
    assert memory_text.NOTHING in memory_text.view_table(empty)
