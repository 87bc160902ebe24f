"""spawn: a rank is a new interpreter, told everything over its control channel; the user's main is not run again."""

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import spawn as mp_spawn

import nbmp
from nbmp.launching.methods.fork import ChildLife
from nbmp.launching.plan import Plan
from nbmp.launching.process import start_each

# nbmp is found where this process has it, whatever the new interpreter's path; until the launcher's path arrives the
# current folder is not searched, so that a user's `random.py` does not get in the way.
_BOOT = (
    "import sys; sys.path[:] = [{root!r}, *filter(None, sys.path)]; import nbmp; del sys.path[0]; "
    "from nbmp.launching.rank import spawned; spawned({channel}, {lifeline})"
)


def start(plans: Sequence[Plan]) -> None:
    """Start a new interpreter for each rank. On an error, those that run already are killed."""
    start_each(plans, _spawn)


def _spawn(plan: Plan) -> "SpawnedLife":
    ends = plan.ends
    channel, lifeline = ends.channel.fileno(), ends.lifeline.fileno()
    popen = subprocess.Popen(
        interpreter("-c", _BOOT.format(root=package_root(), channel=channel, lifeline=lifeline)),
        stdin=subprocess.DEVNULL,
        stdout=ends.stdout.fileno(),
        stderr=ends.stderr.fileno(),
        pass_fds=(channel, lifeline),
        env={**plan.setup.environment, **plan.setup.variables},
        process_group=0,
    )
    return SpawnedLife(popen)


class SpawnedLife(ChildLife):
    """A child that `subprocess` started, and therefore reaps."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        super().__init__(popen.pid)

    def _reap(self) -> int | None:
        return self._popen.poll()


def interpreter(*arguments: str) -> list[str]:
    """Return the command of a Python with this one's flags; honours `multiprocessing.set_executable`."""
    executable = os.fsdecode(mp_spawn.get_executable() or sys.executable)
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [executable, *flags, *arguments]


def package_root() -> str:
    """Return the folder that nbmp was imported from."""
    return os.path.dirname(os.path.dirname(os.path.abspath(nbmp.__file__)))
