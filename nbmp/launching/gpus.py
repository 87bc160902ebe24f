"""A GPU of its own for each rank, by the variable that CUDA reads when it is initialised.

It is part of what a rank is told before its task, so it is set before anything that the task needs is imported. CUDA is
not asked, in no process: it would be initialised by that.
"""

from collections.abc import Sequence
from typing import TypeAlias

from nbmp import platforms
from nbmp.errors import DeviceError
from nbmp.launching.messages import Setup

Gpus: TypeAlias = str | Sequence[int | str] | None
VARIABLE = "CUDA_VISIBLE_DEVICES"


def with_gpus(setups: list[Setup], gpus: Gpus) -> list[Setup]:
    """Return what the ranks are told, with a GPU for each, in turn."""
    if gpus is None:
        return setups
    names = _names(gpus)
    return [
        setup._replace(variables={**setup.variables, VARIABLE: names[number % len(names)]})
        for number, setup in enumerate(setups)
    ]


def _names(gpus: str | Sequence[int | str]) -> list[str]:
    if isinstance(gpus, str):
        if gpus != "all":
            raise ValueError(f"gpus is 'all' or a list such as [0, 1], not {gpus!r}")
        names = platforms.visible_gpus()
        if not names:
            raise DeviceError(
                "gpus='all' was asked for, but there is no NVIDIA GPU that this process may use (see "
                f"{VARIABLE}): leave it out, or list GPUs"
            )
        return names
    names = [str(gpu).strip() for gpu in gpus]
    if not names or not all(names):
        raise ValueError(f"gpus is 'all' or a list of at least one number or UUID, not {gpus!r}")
    return names
