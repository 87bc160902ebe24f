"""IPython in a rank. Everything here runs in a rank, never in the notebook's process.

    forked rank     has inherited the kernel's shell, whose sockets belong to the kernel: what it shows goes
                    through `send` to the launching process, what it asks for (input) is an error
    spawned rank    has no shell; the first `get_ipython()`, `display()` or magic makes one

`send` ships a message over the rank's control channel. Both streams are flushed first, so that prints and
displays keep their order."""

import base64
import getpass
import sys
from collections.abc import Callable
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from nbmp.launch.frontends import Display

WIDGET = "application/vnd.jupyter.widget-view+json"

Send = Callable[[Display], None]

_send: Send | None = None
_namespace: dict[str, Any] = {}


class RankPublisher(DisplayPublisher):
    """Publishes what the rank displays through the launching process."""

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: object = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        # A widget's model lives in this rank, where no front end can reach it: its text can be shown.
        shown = {mime: _jsonable(value) for mime, value in data.items() if mime != WIDGET}
        content = {"data": shown, "metadata": metadata or {}, "transient": transient or {}}
        _ship(Display("update_display_data" if update else "display_data", content))

    def clear_output(self, wait: bool = False) -> None:
        _ship(Display("clear_output", {"wait": wait}))


def install(send: Send) -> None:
    """Route what this rank displays through `send`. Called once, as soon as IPython is imported in the
    rank."""
    global _send
    _send = send
    inherited: Any = InteractiveShell._instance
    if inherited is not None:
        _settle(inherited)
    else:
        # `get_ipython()` and `display()` ask this first: the shell is made when something wants one
        setattr(InteractiveShell, "initialized", classmethod(lambda cls: shell() is not None))  # noqa: B010


def shell() -> Any:
    """Return this rank's shell, made on the first call."""
    if InteractiveShell._instance is None:
        main = sys.modules["__main__"]
        _settle(InteractiveShell.instance(config=_quiet_config(), user_ns=_namespace))
        sys.modules["__main__"] = main  # where unpickling looks for what the notebook defined
    return InteractiveShell._instance


def adopt(namespace: dict[str, Any], now: bool) -> None:
    """Make `namespace` the one that this rank's magics work in. A shell is made `now`, or when something asks
    for one."""
    global _namespace
    _namespace = namespace
    if now or InteractiveShell._instance is not None:
        own = shell()
        if own.user_ns is not namespace:
            own.user_module, own.user_ns = own.prepare_user_module(None, namespace)
            own.init_user_ns()
        namespace.setdefault("display", display)


def _settle(own: Any) -> None:
    own.display_pub = RankPublisher(parent=own)  # type: ignore[no-untyped-call]
    # The kernel's own asks a front end that answers the kernel alone.
    getpass.getpass = _ask
    for name in ("exit", "quit"):
        if type(own.user_ns.get(name)).__module__.startswith(("IPython.", "ipykernel.")):
            own.user_ns[name] = sys.exit


def _quiet_config() -> Any:
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    return config


def _ship(message: Display) -> None:
    if _send is not None:
        _send(message)


def _jsonable(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _ask(prompt: str = "", *_: Any, **__: Any) -> str:
    return input(prompt)  # the core's, which says why there is none
