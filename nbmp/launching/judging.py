"""How a rank ended: made of what it told and of what became of its process."""

import signal
import time

from nbmp import platforms
from nbmp.launching.describing import crash_frames, in_cells, report
from nbmp.launching.frontends import Frontend
from nbmp.launching.process import UNKNOWN_STATUS
from nbmp.launching.record import RankRecord
from nbmp.reports import RankFailure

LOST = (
    "Its result (or exception) is lost: it has closed a descriptor that is not its own (os.close, os.closerange) and "
    "that would have carried it."
)

LEFT = (
    "It had a lock, or waited for an event, condition or barrier, which is out of order now: make a new one before you "
    "start again."
)


def judge(record: RankRecord, code: int, frontend: Frontend, oom_kills_before: int) -> tuple[str, RankFailure | None]:
    """Return the final state of a rank whose process ended with `code`, and its failure if it is one.

    Only what the rank did by itself is a failure: a signal of ours is not. Every other signal is, and so is any exit
    code but 0; `os._exit(0)` counts as `sys.exit(0)`, success without a result.
    """
    if record.raised is not None:
        told = record.raised
        text, described = in_cells(told.text, frontend.cell_name), report(told.exception, frontend)
        return "raised", RankFailure(record.rank, record.pid, told.when, told.stage, 1, None, described, text)
    is_cut_off = record.stopping and record.is_unread  # what it has put into queues is lost
    if record.left_with is not None and not is_cut_off:
        return ("exited", _exited(record, record.left_with)) if record.left_with else ("done", None)
    if code == 0 or (record.returned and not is_cut_off and (code == UNKNOWN_STATUS or record.stopping)):
        return "done", None
    if record.stopping and code < 0:
        return "stopped", None
    if code < 0:
        return "killed", _killed(record, code, frontend, oom_kills_before)
    return "exited", _exited(record, code)


def signal_name(number: int) -> str:
    """Return `SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


def _exited(record: RankRecord, code: int) -> RankFailure:
    hint = _last_errors(record)
    if code == UNKNOWN_STATUS and not record.has_outcome:
        hint = "(255 also stands for an exit status that somebody else's wait() took.)\n" + hint
    if record.has_lost_its_channel:
        hint = f"{LOST}\n{hint}"
    return RankFailure(record.rank, record.pid, time.monotonic(), record.stage, code, None, hint=hint.rstrip())


def _killed(record: RankRecord, code: int, frontend: Frontend, oom_kills_before: int) -> RankFailure:
    name = signal_name(-code)
    reasons = {
        "SIGKILL": "SIGKILL comes from outside: the out-of-memory killer, a job scheduler, or a person.",
        "SIGSEGV": "A segmentation fault happens in compiled code: an extension module, ctypes, or a stack overflow.",
        "SIGBUS": "A bus error is an access to memory that is not there, such as a file cut short under a memmap.",
    }
    reason = reasons.get(name, "")
    if name == "SIGKILL" and platforms.oom_kills() > oom_kills_before:
        reason = "The out-of-memory killer struck while the ranks ran: they needed more memory than there is."
    had = LEFT if record.notes.all() else ""
    hint = "\n".join(filter(None, (reason, had, _last_errors(record))))
    stack = crash_frames(record.crash.fatal(), frontend)
    return RankFailure(record.rank, record.pid, time.monotonic(), record.stage, code, name, stack=stack, hint=hint)


def _last_errors(record: RankRecord) -> str:
    if not record.last_errors:
        return ""
    return "Its last lines on stderr:\n" + "\n".join(f"  {line}" for line in record.last_errors)
