"""Choosing a sharing strategy, and who inherits the choice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.memory.arrays import place_of
from tests import scripts
from tests.strategies import ONLY_BY_DESCRIPTOR, ONLY_BY_NAME

BIG = 100_000


def kind_of(array: Any) -> str:
    """Return the strategy that a shared array was made under."""
    place = place_of(array)
    assert place is not None
    return "file_system" if place[0].fd == -1 else "file_descriptor"


def test_all_are_listed_and_the_chosen_one_is_told(strategy: str) -> None:
    assert nbmp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert nbmp.get_sharing_strategy() == strategy
    assert kind_of(nbmp.zeros(BIG)) == kind_of(nbmp.zeros(1)) == strategy


@pytest.mark.parametrize("wrong", ["file_sytem", "", "FILE_SYSTEM", None, 3])
def test_unknown_name_is_an_error_that_lists_the_known_ones(wrong: Any, strategy: str) -> None:
    with pytest.raises(ValueError, match="file_descriptor, file_system"):
        nbmp.set_sharing_strategy(wrong)
    assert nbmp.get_sharing_strategy() == strategy


@ONLY_BY_DESCRIPTOR
def test_what_was_made_before_keeps_its_kind_and_both_travel_together() -> None:
    q = nbmp.Queue()
    before = nbmp.zeros(BIG), nbmp.zeros(1)
    nbmp.set_sharing_strategy("file_system")
    after = nbmp.zeros(BIG), nbmp.zeros(1)
    nbmp.set_sharing_strategy("file_descriptor")
    assert [kind_of(array) for array in (*before, *after)] == ["file_descriptor"] * 2 + ["file_system"] * 2
    q.put((before, after, np.ones(BIG)))
    arrived = q.get(timeout=5)
    for index, array in enumerate((*arrived[0], *arrived[1])):
        array[0] = index
    assert [array[0] for array in (*before, *after)] == [0, 1, 2, 3]
    assert arrived[2].all()


def tell_strategy(rank: int, deeper: str | None) -> Any:
    if deeper:
        return nbmp.launch(tell_strategy, (None,), start_method=deeper)[0]
    array = nbmp.full(BIG, 7)
    return nbmp.get_sharing_strategy(), array


def test_ranks_and_their_ranks_inherit_the_choice(method: str, strategy: str) -> None:
    for deeper in (None, "fork"):
        ((told, array),) = nbmp.launch(tell_strategy, (deeper,), start_method=method)
        assert (told, kind_of(array), array[-1]) == (strategy, strategy, 7)


def test_workers_inherit_the_choice(method: str, strategy: str) -> None:
    with nbmp.Pool(1, start_method=method) as pool:
        told, array = pool.apply(tell_strategy, (0, None))
    assert (told, kind_of(array), array[-1]) == (strategy, strategy, 7)


def choose_itself(rank: int) -> Any:
    nbmp.set_sharing_strategy("file_system")
    return nbmp.full(BIG, 7), np.full(BIG, 8)


@ONLY_BY_DESCRIPTOR
def test_what_a_rank_sent_by_name_on_its_own_outlives_it(method: str) -> None:
    """Its session has no other process, and nobody has received anything yet when it ends."""
    q = nbmp.Queue()
    nbmp.launch(put_chosen, (q,), start_method=method)
    shared, private = q.get(timeout=5)
    assert (kind_of(shared), nbmp.is_shared(private)) == ("file_system", False)
    assert (shared == 7).all()
    assert (private == 8).all()
    second = nbmp.Queue()
    second.put(shared)
    assert np.shares_memory(second.get(timeout=5), shared)


def put_chosen(rank: int, q: Any) -> None:
    q.put(choose_itself(rank))


def pass_on(rank: int, source: Any, target: Any) -> None:
    array = source.get(timeout=20)
    array[rank] += 1
    target.put(array)


def test_received_array_is_sent_on_to_a_third_process(method: str) -> None:
    first, second = nbmp.Queue(), nbmp.Queue()
    array = nbmp.zeros(BIG)
    first.put(array)
    nbmp.start_processes(pass_on, (first, second), start_method=method)
    nbmp.start_processes(pass_on, (second, first), start_method=method)
    arrived = first.get(timeout=20)
    assert array[0] == 2
    arrived[1] = 3
    assert array[1] == 3


def test_segment_that_arrives_twice_is_one_mapping() -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(BIG)
    for _ in range(3):
        q.put(array)
    arrived = [q.get(timeout=5) for _ in range(3)]
    place = place_of(array)
    assert place is not None
    assert Path("/proc/self/maps").read_text().count(f" {place[0].key[1]} ") == 1
    assert len({other.__array_interface__["data"][0] for other in arrived}) == 1


@ONLY_BY_NAME
def test_files_may_be_read_by_nobody_else(tmp_path: Path) -> None:
    told = scripts.output(
        tmp_path,
        """
        import os, stat, nbmp
        nbmp.set_sharing_strategy("file_system")
        array = nbmp.zeros(100_000)
        from nbmp.memory.session import own_session
        folder = f"/dev/shm/{own_session().name}"
        modes = {os.stat(f"{folder}/{name}").st_mode for name in os.listdir(folder)}
        print(oct(stat.S_IMODE(os.stat(folder).st_mode)), [oct(stat.S_IMODE(mode)) for mode in modes])
        """,
    )
    assert told == "0o700 ['0o600']\n"


@ONLY_BY_NAME
def test_descriptors_are_not_inherited_by_programs_that_are_executed() -> None:
    array = nbmp.zeros(BIG)
    links = {int(path.name): os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    ours = [fd for fd, target in links.items() if target.startswith("/dev/shm/nbmp-")]
    assert ours
    assert not any(map(os.get_inheritable, ours))
    del array


@ONLY_BY_NAME
def test_many_arrays_in_one_message_go_outside_the_packet(method: str) -> None:
    arrays = [nbmp.full(9_000, index) for index in range(300)]
    assert nbmp.launch(sum_of_firsts, (arrays,), start_method=method) == [sum(range(300))]


def sum_of_firsts(rank: int, arrays: list[Any]) -> float:
    return float(sum(array[0] for array in arrays))


@ONLY_BY_NAME
def test_name_that_was_removed_is_told_to_the_receiver_and_the_next_message_comes() -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(BIG)
    place = place_of(array)
    assert place is not None
    segment: Any = place[0]
    segment.unlink()
    q.put(array)
    q.put("next")
    with pytest.raises(nbmp.MissingSegmentError, match="removed by somebody"):
        q.get(timeout=5)
    assert q.get(timeout=5) == "next"


@ONLY_BY_NAME
def test_symbolic_link_in_place_of_a_name_is_not_followed(tmp_path: Path) -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(BIG)
    place = place_of(array)
    assert place is not None
    segment: Any = place[0]
    path = Path("/dev/shm") / segment.session.name / segment.name
    path.unlink()
    other = tmp_path / "other"
    other.write_bytes(bytes(800_000))
    path.symlink_to(other)
    try:
        q.put(array)
        with pytest.raises(nbmp.MissingSegmentError):
            q.get(timeout=5)
    finally:
        path.unlink()
    assert other.exists()


@ONLY_BY_NAME
def test_folder_that_was_removed_is_replaced(tmp_path: Path) -> None:
    told = scripts.output(
        tmp_path,
        """
        import shutil, nbmp
        nbmp.set_sharing_strategy("file_system")
        from nbmp.memory.session import own_session
        kept = nbmp.ones(100_000)
        shutil.rmtree(f"/dev/shm/{own_session().name}")
        array = nbmp.full(100_000, 3.0)
        q = nbmp.Queue()
        q.put(array)
        print(q.get().sum(), kept.sum())
        """,
    )
    assert told == "300000.0 100000.0\n"


@ONLY_BY_NAME
def test_long_temporary_folder_does_not_matter(method: str, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 200)
    deep.mkdir()
    done = scripts.run(
        tmp_path,
        """
        import sys, numpy as np, nbmp
        nbmp.set_sharing_strategy("file_system")
        def double(rank, shared, private):
            shared *= 2
            return private * 2
        array = nbmp.ones(100_000)
        (result,) = nbmp.launch(double, (array, np.ones(100_000)), start_method=sys.argv[1])
        print(array.sum(), result.sum())
        """,
        method,
        env={"TMPDIR": str(deep)},
    )
    assert done.stdout == "200000.0 200000.0\n", done.stderr
