"""IPython in a rank: how the core and a cell's body reach it. Everything here runs in a rank.

    forked rank     has inherited the kernel's shell, whose sockets belong to the kernel: what it shows goes
                    through `send` to the launching process (displays, values, pages) or is written (tracebacks),
                    what it asks for (a password) is an error
    spawned rank    has no shell; the first `get_ipython()`, `display()` or magic makes one

`send` ships a message over the rank's control channel; it flushes both streams first, so that prints and
displays keep their order.

IPython is imported inside functions only: its import calls `install`, also when this module began it.
"""

import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbmp.launching.frontends import Display

_send: "Callable[[Display], None] | None" = None
_namespace: dict[str, Any] = {}


def install(send: "Callable[[Display], None]") -> None:
    """Route what this rank displays through `send`. Called once, when IPython is there."""
    global _send
    _send = send
    from IPython.core.interactiveshell import InteractiveShell

    inherited: Any = InteractiveShell._instance
    if inherited is not None:
        _settle(inherited)
    else:
        # `get_ipython()` and `display()` ask this first: the shell is made when something wants one
        setattr(InteractiveShell, "initialized", classmethod(lambda cls: shell() is not None))  # noqa: B010


def ship(message: "Display") -> None:
    """Have the launching process show this."""
    if _send is not None:
        _send(message)


def shell() -> Any:
    """Return this rank's shell, made on the first call."""
    from IPython.core.interactiveshell import InteractiveShell

    if InteractiveShell._instance is None:
        from traitlets.config import Config

        config = Config({"HistoryManager": {"enabled": False}})
        main = sys.modules["__main__"]
        _settle(InteractiveShell.instance(config=config, user_ns=_namespace))
        sys.modules["__main__"] = main  # where unpickling looks for what the notebook defined
    return InteractiveShell._instance


def adopt(namespace: dict[str, Any], now: bool) -> None:
    """Make `namespace` the one that this rank's magics work in; the shell is made `now`, or when wanted."""
    global _namespace
    _namespace = namespace
    core = sys.modules.get("IPython.core.interactiveshell")
    if now or (core is not None and core.InteractiveShell._instance is not None):
        from IPython.display import display

        own = shell()
        if own.user_ns is not namespace:
            own.user_module, own.user_ns = own.prepare_user_module(None, namespace)
            own.init_user_ns()
        namespace.setdefault("display", display)


def display(*objects: Any, **options: Any) -> Any:
    """As IPython's."""
    from IPython import display as module

    shown: Any = module.display(*objects, **options)  # type: ignore[no-untyped-call]
    return shown


def get_ipython() -> Any:
    """Return this rank's shell."""
    return shell()


def _settle(own: Any) -> None:
    from nbmp.notebook.output.publisher import RankPublisher

    own.display_pub = RankPublisher(ship, parent=own)
    _settle_values(own)
    _settle_tracebacks(own)
    _settle_pages(own)
    # The kernel's own asks a front end that answers the kernel alone.
    getpass.getpass = _ask
    comm: Any = sys.modules.get("comm")
    if comm is not None:  # the kernel's would write to its sockets whenever a widget is made
        comm.create_comm = lambda *args, **kwargs: comm.DummyComm(*args, **kwargs)
    for name in ("exit", "quit"):
        if type(own.user_ns.get(name)).__module__.startswith(("IPython.", "ipykernel.")):
            own.user_ns[name] = sys.exit


def _settle_values(own: Any) -> None:
    """Show the value of what `run_cell` runs as a display. The hook itself stays: a new one would forget `_`."""
    hook = own.displayhook
    hook.start_displayhook = hook.write_output_prompt = hook.finish_displayhook = lambda: None
    hook.write_format_data = lambda data, metadata=None: own.display_pub.publish(data, metadata)


def _settle_tracebacks(own: Any) -> None:
    """Write tracebacks that IPython shows, in order with prints."""
    from IPython.core.interactiveshell import InteractiveShell

    own._showtraceback = InteractiveShell._showtraceback.__get__(own)


def _settle_pages(own: Any) -> None:
    """Show what is meant for a pager, as of `?print`: the kernel's is part of the reply to its own cell."""
    from IPython.core import page

    def show(text: Any, *_: Any, **__: Any) -> None:
        own.display_pub.publish(text if isinstance(text, dict) else {"text/plain": text})

    own.set_hook("show_in_pager", page.as_hook(show), 0)  # type: ignore[no-untyped-call]


def _ask(prompt: str = "", *_: Any, **__: Any) -> str:
    return input(prompt)  # the core's, which says why there is none
