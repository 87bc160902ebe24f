"""A cell's body compiled for the ranks, in the launching process.

The code object of the cell: the body's statements, then its last expression on its own, both under the cell's
file name and with the line numbers of the cell as it was typed."""

import __future__

import ast
import dis
import re
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType
from typing import Any

from nbmp.notebook.cells.body import CellBody
from nbmp.notebook.cells.names import Place, place_of_body

FUTURES = 0
for _feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _feature).compiler_flag

LOADED = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF")
STORED = ("STORE_NAME", "STORE_GLOBAL")

SHELL_NAMES = ("get_ipython", "display", "exit", "quit", "open")
"""Names that IPython puts into a notebook's namespace."""


class BodySyntaxError(Exception):
    """A cell's body is not valid Python; shown as IPython shows the SyntaxError of a whole cell.

    It is no SyntaxError itself: for one raised by a magic, IPython prints the magic's own frames.
    """

    def __init__(self, shell: Any, error: SyntaxError):
        super().__init__(str(error))
        self._shell = shell
        self._error = error

    def _render_traceback_(self) -> Any:
        return self._shell.SyntaxTB.structured_traceback(type(self._error), self._error, [])


BodySyntaxError.__name__ = BodySyntaxError.__qualname__ = "SyntaxError"


class Source:
    """The body of the cell magic that now runs. `BodySyntaxError` when it does not compile.

    Attributes
    ----------
    has_value : bool
        Whether its last statement is an expression whose value a cell would show: no semicolon after it.
    guesses : set of str
        Names that it perhaps takes from the notebook, perhaps not: it assigns them itself, or they occur in
        the text of a magic. One that cannot travel is left at home.
    """

    def __init__(self, shell: Any, text: str):
        self.shell = shell
        place = place_of_body(shell, text)
        stripped = text.lstrip("\n")  # IPython's transformers would, and lines are counted from here
        place = Place(place.filename, place.first_line + len(text) - len(stripped))
        try:
            python = shell.transform_cell(stripped)
            tree = ast.parse(python, place.filename)
        except SyntaxError as error:
            raise BodySyntaxError(shell, _moved(error, place)) from None
        self.is_empty = not tree.body
        self.has_value = _has_value(tree, python)
        ast.increment_lineno(tree, place.first_line - 1)
        tree = shell.transform_ast(tree)
        try:
            self._codes = tuple(self._compiled(tree, place.filename))
        except SyntaxError as error:  # found by the compiler: its line is right already
            if error.msg == "'return' outside function":
                error.msg += ": the last expression is the result of a rank"
            raise BodySyntaxError(shell, error) from None
        in_magics = set(_names_in_magics(tree))
        self.guesses = in_magics | {name for code in self._codes for name in _names(code, STORED)}
        self._names = sorted(in_magics | {name for code in self._codes for name in _names(code, LOADED)})

    def body(self, world_size: int, at_home: Collection[str] = ()) -> CellBody:
        """Return the body to be run in `world_size` ranks, the names `at_home` not taken along."""
        namespace = self.shell.user_ns
        not_taken = {"rank", "world_size", *at_home}
        used = [name for name in self._names if name in namespace and name not in not_taken]
        provided = tuple(name for name in used if name in SHELL_NAMES and _is_ipythons(namespace[name]))
        return CellBody(self._codes, _anchor(namespace, [n for n in used if n not in provided]), world_size, provided)

    def _compiled(self, tree: ast.Module, filename: str) -> Iterator[CodeType]:
        flags = self.shell.compile.flags & FUTURES | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            yield compile(tree, filename, "exec", flags, dont_inherit=True)
        if isinstance(last, ast.Expr):
            yield compile(ast.Expression(last.value), filename, "eval", flags, dont_inherit=True)


def _anchor(namespace: dict[str, Any], names: list[str]) -> FunctionType:
    """Return a function that has `namespace` as its globals and uses `names` from it."""
    listed = "".join(f"{name}, " for name in names)
    function: CodeType = compile(f"lambda: ({listed})", "<names of the cell>", "eval").co_consts[0]
    return FunctionType(function, namespace, "names of the cell")


def _names(code: CodeType, operations: Collection[str]) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in operations:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant, operations)


def _names_in_magics(tree: ast.AST) -> Iterator[str]:
    """Find the names in the text of magics and shell commands: `%timeit f(x)`, `!echo {x}`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("get_ipython"))), args=arguments):
                for text in arguments:
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield from re.findall(r"[^\W\d]\w*", text.value)


def _is_ipythons(value: Any) -> bool:
    """Whether IPython put this object into the namespace, not the user."""
    owner = getattr(value, "__module__", None) or type(value).__module__
    return owner.partition(".")[0] in ("IPython", "ipykernel", "google", "_pyio", "io", "_io")


def _has_value(tree: ast.Module, python: str) -> bool:
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return False
    last = tree.body[-1]
    lines = python.split("\n")[(last.end_lineno or 1) - 1 :]
    rest = lines[0].encode()[last.end_col_offset or 0 :].decode()
    return not rest.lstrip().startswith(";")


def _moved(error: SyntaxError, place: Place) -> SyntaxError:
    error.filename = place.filename
    for attribute in ("lineno", "end_lineno"):
        line = getattr(error, attribute, None)
        if line is not None:
            setattr(error, attribute, line + place.first_line - 1)
    return error
