"""Classes of the user's program or notebook, sent by value: what they are, and that they stay the same class."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import scripts

PRELUDE = """
import dataclasses, sys
import nbmp
method = sys.argv[1]
def there(function, *args):
    return nbmp.launch(function, args, 1, start_method=method)[0]
"""

SLOTS = """
@dataclasses.dataclass(slots=True)
class Point:
    x: int = 0
class Private:
    __slots__ = ("__value", "__weakref__")
    def __init__(self, value): self.__value = value
    def value(self): return self.__value
class More(Private):
    __slots__ = "more"
class Free(Private):
    "Has a dictionary again."
def back(rank, point, more):
    try:
        point.other = 1
    except AttributeError:
        free = Free(4); free.name = "free"
        return [Point(2), Private(3), free, point, more]
one, private, free, point, more = there(back, Point(1), More(5))
assert (one, point) == (Point(2), Point(1))
assert (private.value(), free.value(), free.name, more.value()) == (3, 4, "free", 5)
assert type(more) is More and not hasattr(more, "__dict__")
"""

HOOKS = """
REGISTRY = {}
class Plugin:
    known = []
    def __init_subclass__(cls, key, **options):
        super().__init_subclass__(**options)
        cls.key = key
        REGISTRY[cls.label] = cls
        Plugin.known.append(cls)
class Reader(Plugin, key="r"):
    label = "reader"
class Meta(type):
    def __new__(mcs, name, bases, body, **options):
        if bases and "table" not in body:
            raise TypeError("a row needs a table")
        return super().__new__(mcs, name, bases, body)
class Row(metaclass=Meta): pass
class User(Row): table = "users"
def look(rank, reader):
    class Late(Plugin, key="l"): label = "late"
    known = list(REGISTRY), len(Plugin.known)
    return type(reader) is Reader is REGISTRY["reader"], Reader.key, known, type(User) is Meta, User.table, Late.key
assert there(look, Reader()) == (True, "r", (["reader", "late"], 2), True, "users", "l")
assert there(lambda rank: isinstance(Reader(), Plugin)) and list(REGISTRY) == ["reader"]
"""

SAME = """
class Refuses(type):
    def __eq__(cls, other): raise ValueError("not to be compared")
class Odd(metaclass=Refuses): pass
class Task:
    class Part: pass
    def __init__(self): self.part = Task.Part()
def serve(rank, tasks, answers):
    while (task := tasks.get()) is not None:
        answers.put((isinstance(task, Task), isinstance(task.part, Task.Part), Task()))
tasks, answers = nbmp.Queue(), nbmp.Queue()
ranks = nbmp.start_processes(serve, (tasks, answers), join=False, start_method=method)
tasks.put(Task())  # for the first time since the rank was started
there_same, part_same, made_there = answers.get(timeout=50)
assert there_same and part_same and isinstance(made_there, Task) and isinstance(made_there.part, Task.Part)
old = Task
class Task: pass
tasks.put(old())
assert isinstance(answers.get(timeout=50)[2], old)
tasks.put(None)
assert ranks.join(50)
"""


@pytest.mark.parametrize("program", [SLOTS, HOOKS, SAME], ids=["slots", "hooks", "identity"])
def test_a_class_of_the_program_is_the_same_in_a_rank(program: str, method: str, tmp_path: Path) -> None:
    assert scripts.output(tmp_path, PRELUDE + program + "print('good')", method) == "good\n"
