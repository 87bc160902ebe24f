"""Starting ranks: the three public functions.

nothing is started before    arguments are checked, the start method is chosen, the task is pickled (once)
then                         `begin` -> monitor -> waiting
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any, SupportsIndex

from nbmp.errors import ProcessException
from nbmp.launching.context import ProcessContext
from nbmp.launching.default_method import choose
from nbmp.launching.exiting import end_at_exit
from nbmp.launching.frontends import current
from nbmp.launching.gpus import Gpus, with_gpus
from nbmp.launching.interrupts import held_back
from nbmp.launching.last import remember
from nbmp.launching.messages import Call
from nbmp.launching.record import RankRecord
from nbmp.launching.setups import setups, thread_variables
from nbmp.launching.starting import begin
from nbmp.launching.timeouts import join_in_time
from nbmp.launching.written import outputs
from nbmp.pickling.leaving import dumps

_log = logging.getLogger("nbmp")


def start_processes(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str | None = None,
    *,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    gpus: Gpus = None,
    timeout: float | None = None,
    grace_period: float | None = None,
) -> ProcessContext | None:
    """Call `fn(rank, *args)` in `nprocs` processes.

    Parameters
    ----------
    fn : callable
        What every rank calls: with its rank, a number from 0 to `nprocs` - 1, and with `args`. A function of a cell, a
        lambda or a method will do.
    args : iterable
        Its further arguments, the same for every rank; one is written `args=(x,)`. Under fork they are inherited. Under
        forkserver and spawn they are pickled once, with `fn`, before anything is started: functions and classes of
        `__main__` and of cells by value, shared arrays by handle (the same memory in every rank), large private arrays
        by one copy for all ranks, which each rank may write to as its own.
    nprocs : int
        Number of ranks; 0 starts nothing.
    join : bool
        Wait for the ranks; otherwise return at once.
    daemon : bool
        Ranks are stopped when this process exits, instead of waited for, and may not have children. In a notebook all
        ranks are stopped with the kernel.
    start_method : {"fork", "forkserver", "spawn"}, optional
        None: see `default_start_method`.
    threads : int, optional
        BLAS and OpenMP threads of each rank. None: cores / ranks, unless a variable such as OMP_NUM_THREADS is set.
    env : mapping, optional
        Environment variables for the ranks, besides this process' own and RANK, LOCAL_RANK and WORLD_SIZE.
    gpus : "all" or sequence of int or str, optional
        One GPU for each rank, in turn, of those that this process may use, or of these (numbers or UUIDs as in
        CUDA_VISIBLE_DEVICES). It is set in that variable before the rank imports anything, so that it is device 0
        there. None: every rank sees what this process sees.
    timeout, grace_period : float, optional
        Seconds. With `join`: how long the ranks may take in all, and see `ProcessContext.join`.

    Returns
    -------
    ProcessContext or None
        None with `join`.

    Raises
    ------
    CannotTravelError
        When `fn` or `args` cannot be pickled (not under fork); names the place. Nothing has been started.
    ProcessRaisedException, ProcessExitedException, KeyboardInterrupt
        With `join`: see `ProcessContext.join`. No rank runs any more then.
    CudaForkError
        When a fork is asked for and CUDA is initialised in this process. Nothing has been started.
    DeviceError
        With `gpus="all"`, when there is none. Nothing has been started.
    LaunchTimeoutError
        With `join` and `timeout`, when ranks did not end in time; they have been stopped.
    """
    wait = partial(join_in_time, timeout=timeout, grace_period=grace_period) if join else _go_on
    try:
        context = start(fn, args, nprocs, daemon, start_method, threads, env, wait, gpus=gpus)
    except ProcessException as error:
        raise error.with_traceback(None)  # noqa: B904 - what was in between is nbmp's; the cause is the rank's
    return None if join else context


def launch(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    *,
    daemon: bool = False,
    start_method: str | None = None,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    gpus: Gpus = None,
    timeout: float | None = None,
    grace_period: float | None = None,
) -> list[Any]:
    """Call `fn(rank, *args)` in `nprocs` processes and return what each returned, in rank order.

    Waits for the ranks, and stops them all when one fails. Results come back as arguments go: shared arrays by handle,
    large private ones by one copy, instances of the notebook's classes as instances of those classes.

    Parameters
    ----------
    fn : callable
        What every rank calls: with its rank, a number from 0 to `nprocs` - 1, and with `args`. A function of a cell, a
        lambda or a method will do.
    args : iterable
        Its further arguments, the same for every rank; one is written `args=(x,)`. Shared arrays among them are the
        same memory in every rank, any other array is the rank's own.
    nprocs : int
        Number of ranks; 0 starts nothing.
    daemon : bool
        Ranks are stopped when this process exits, and may not have children.
    start_method : {"fork", "forkserver", "spawn"}, optional
        None: see `default_start_method`.
    threads : int, optional
        BLAS and OpenMP threads of each rank. None: cores / ranks, unless a variable such as OMP_NUM_THREADS is set.
    env : mapping, optional
        Environment variables for the ranks, besides this process' own.
    gpus : "all" or sequence of int or str, optional
        One GPU for each rank, in turn; see `start_processes`.
    timeout : float, optional
        Seconds that the ranks may take in all; then they are stopped and LaunchTimeoutError is raised.
    grace_period : float, optional
        Seconds between asking ranks to end and killing them; see `ProcessContext.join`.

    Returns
    -------
    list
        What `fn` returned in rank 0, 1, ...

    Raises
    ------
    ProcessRaisedException, ProcessExitedException
        When a rank raises, or ends without an outcome: the first that did. The others have been stopped.
    Exception
        Otherwise as `start_processes`: CannotTravelError, CudaForkError, DeviceError, LaunchTimeoutError.

    Examples
    --------
    >>> nbmp.launch(lambda rank, base: base + rank, args=(10,), nprocs=3)
    [10, 11, 12]
    """
    wait = partial(join_in_time, timeout=timeout, grace_period=grace_period)
    try:
        context = start(fn, args, nprocs, daemon, start_method, threads, env, wait, gpus=gpus)
    except ProcessException as error:
        raise error.with_traceback(None)  # noqa: B904 - as above
    return context.take_results()


def spawn(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """As `start_processes`, always with new interpreters: torch's function, with torch's parameters."""
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"spawn always uses the start method 'spawn'; for {start_method!r} call start_processes",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")


def _go_on(_: ProcessContext) -> None:
    """Do not wait for the ranks."""


def start(
    fn: Callable[..., Any],
    args: Iterable[Any],
    nprocs: int,
    daemon: bool,
    start_method: str | None,
    threads: int | None,
    env: Mapping[str, str] | None,
    wait: Callable[[ProcessContext], None],
    *,
    gpus: Gpus = None,
) -> ProcessContext:
    """Start ranks and do with them what `wait` does; an interrupt in between, however it falls, leaves none behind.

    The parameters are those of `start_processes`; `wait` is called in this thread, with the monitor shown. Whatever it
    raises stops the ranks.
    """
    arguments, nprocs = _checked(fn, args, nprocs, threads)
    _check_env(env)
    choice = choose(start_method)
    frontend = current()
    sink = frontend.sink()
    parcel = None if choice.method == "fork" else dumps(Call(fn, arguments), name="")
    variables, in_libraries = thread_variables(nprocs, threads)
    all_variables, inherits = {**variables, **(env or {})}, choice.method == "fork"
    told = setups(nprocs, daemon, all_variables, frontend, inherits=inherits, is_watched=sink.shows_progress)
    told = with_gpus(told, gpus)
    context: ProcessContext | None = None

    def follow(records: Sequence[RankRecord]) -> ProcessContext:
        followed = ProcessContext(records, choice, frontend, sink, daemon)
        end_at_exit(followed)
        sink.entered(followed.number)
        remember(followed)
        outputs.remember(followed)
        return followed

    try:
        with held_back():
            context = begin(told, parcel or Call(fn, arguments).run, choice, in_libraries, follow)
            _show_monitor(context)
            wait(context)
    except BaseException as error:
        if context is not None:
            with held_back():  # one more press kills at once, and is told of by this error
                context.stop_for(error)
                raise
        raise
    return context


def _checked(fn: Any, args: Any, nprocs: Any, threads: Any) -> tuple[tuple[Any, ...], int]:
    """Return the arguments as a tuple, and `nprocs` as Python's int: it may be one of NumPy's."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if isinstance(nprocs, bool) or not isinstance(nprocs, SupportsIndex):
        raise TypeError(f"nprocs must be an int, not {type(nprocs).__name__}")
    count = index(nprocs)
    if count < 0:
        raise ValueError(f"nprocs must not be negative: {nprocs}")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int)):
        raise TypeError(f"threads must be an int, not {type(threads).__name__}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1: {threads}")
    is_one = isinstance(args, str | bytes | Mapping) or hasattr(args, "__array__")
    if is_one or not isinstance(args, Iterable):
        raise TypeError(
            f"args must be a tuple of arguments, not {type(args).__name__}: for one argument write args=(x,)"
        )
    return tuple(args), count


def _check_env(env: Mapping[Any, Any] | None) -> None:
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(
                f"env must map names to text, not {name!r} to {value!r}: write {str(name)!r}: {str(value)!r}"
            )
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(
                f"env cannot have {name!r}: {value!r}: a name is not empty and has no '=', nothing has a NUL"
            )


def _show_monitor(context: ProcessContext) -> None:
    try:
        context.frontend.watch(context)
    except Exception:
        _log.exception("the monitor of the ranks could not be shown")
