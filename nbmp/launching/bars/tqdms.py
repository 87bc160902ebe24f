"""tqdm's bars in a rank are bars on the rank board. Every line runs in the rank.

    tqdm.std         `display` writes to the board instead of drawing. Where no table of ranks shows that, the last
                     state of a bar that is left standing is written as one line when it is closed
    tqdm.notebook    as tqdm.std: its widgets would need a kernel. Hence tqdm.auto, too

Only bars that go to the rank's own streams: one with a `file` of its own is drawn there by tqdm.

tqdm's lock is shared by all processes: one that is killed while it holds it would stop all others. Its thread that
refreshes slow bars is not in a fork, which tqdm does not notice. Both are made anew here.
"""

import sys
import threading
from typing import Any
from weakref import WeakSet

from nbmp.launching.onimport import when_imported

FORMAT = "{desc}{n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
FORMAT_WITHOUT_TOTAL = "{desc}{n_fmt}{unit} [{elapsed}, {rate_fmt}{postfix}]"


_draws_lines = True


def adopt(*, draw_lines: bool) -> None:
    """Take over tqdm's bars from now on: those of its modules that are here, and those that come.

    With `draw_lines` a bar that is left standing is written as a line when it is closed: nobody sees the board.
    """
    global _draws_lines
    _draws_lines = draw_lines
    when_imported("tqdm.std", _adopt_std)
    when_imported("tqdm.notebook", _adopt_notebook)


def _adopt_std() -> None:
    bars = sys.modules["tqdm.std"].tqdm
    for inherited in list(getattr(bars, "_instances", ())):  # of the launching process
        inherited.disable = True
    bars._instances = WeakSet()
    bars.set_lock(threading.RLock())
    bars.monitor = None
    bars.display = _instead(_display, bars.display)
    bars.close = _closing(bars.close)
    bars.clear = _instead(_nothing, bars.clear)
    bars.moveto = _instead(_nothing, bars.moveto)


def _adopt_notebook() -> None:
    bars = sys.modules["tqdm.notebook"].tqdm_notebook
    base = sys.modules["tqdm.std"].tqdm
    for name in ("status_printer", "display", "colour", "__iter__", "update", "close", "clear", "reset"):
        if name in vars(bars):
            delattr(bars, name)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("display", None)
        if kwargs.get("file") in (None, sys.stderr):
            kwargs["file"] = sys.stdout  # as it does: no red block
        kwargs["disable"] = bool(kwargs.get("disable", False))
        super(bars, self).__init__(*args, **kwargs)
        self.disp = self.display

    init.__wrapped__ = base.__init__  # type: ignore[attr-defined]  # its signature is that of tqdm.std
    bars.__init__ = init


def _instead(ours: Any, theirs: Any) -> Any:
    """Return a method that is `ours` for bars that go to the rank's own streams, and `theirs` for others."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (ours if _is_ours(self) else theirs)(self, *args, **kwargs)

    return method


def _is_ours(self: Any) -> bool:
    file = getattr(self, "fp", None)  # a disabled bar has none
    return file is not None and getattr(file, "_wrapped", file) in (sys.stderr, sys.stdout)


def _closing(theirs: Any) -> Any:
    """Return `close`, which leaves nothing standing where no lines are drawn."""

    def close(self: Any) -> None:
        if _draws_lines or not _is_ours(self):
            theirs(self)
            return
        leave, self.leave = self.leave, False
        try:
            theirs(self)
        finally:
            self.leave = leave

    return close


def _display(self: Any, msg: str | None = None, pos: int | None = None, **_: Any) -> bool:
    if not self.disable:
        _draw(self)
        return True
    bar = vars(self).pop("_nbmp_bar", None)  # tqdm is closing it
    if bar is not None:
        _draw_on(bar, self)
        bar.close()
    if msg is None:
        self.fp.write(str(self))  # its newline follows
    return False


def _draw(self: Any) -> None:
    bar = vars(self).get("_nbmp_bar")
    if bar is None:
        from nbmp.launching.bars.opened import OpenBar
        from nbmp.launching.bars.slots import WORDED

        bar = self._nbmp_bar = OpenBar(WORDED, self.total, "", self.n)
    _draw_on(bar, self)


def _draw_on(bar: Any, self: Any) -> None:
    known = self.total is not None and self.n <= self.total
    how = {"bar_format": FORMAT if known else FORMAT_WITHOUT_TOTAL, "ncols": None, "colour": None}
    label = self.desc if not self.desc or self.desc.endswith(": ") else f"{self.desc}: "
    text = self.format_meter(**{**self.format_dict, **how, "prefix": label})
    bar.change(total=self.total if known else None, text=text, n=self.n)


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing was drawn."""
