"""What an interrupt did, said in one line: by the KeyboardInterrupt itself, which stays one of Python's own type."""

import traceback
from functools import partial

from nbmp.launching.describing import is_users
from nbmp.launching.frontends import current
from nbmp.reports import COLOURS, Frame


def explain(press: KeyboardInterrupt, text: str) -> None:
    """Make `text` the message of `press`, and that all that a notebook shows, with the lines of the user's code."""
    if not press.args:
        press.args = (text,)
        vars(press)["_render_traceback_"] = partial(_rendered, press)  # what IPython asks for


def tell_of_ranks(press: KeyboardInterrupt, aftermath: str) -> None:
    """Have `press`, after which the ranks were stopped, say what became of them."""
    explain(press, f"the ranks were stopped: {aftermath}" if aftermath else "the ranks had ended before")


def _rendered(press: KeyboardInterrupt, *_: object) -> list[str]:
    name = current().cell_name
    frames = [
        Frame(name(frame.filename) or frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(press.__traceback__)
        if is_users(frame.filename)
    ]
    if all(frame.is_top for frame in frames):  # the cell itself, which is in sight
        frames = []
    places = [f"  in {frame.place()}" for frame in reversed(frames)]
    return [f"{COLOURS.red}KeyboardInterrupt{COLOURS.off}: {press}", *places]
