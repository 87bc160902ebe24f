"""The supervisor: one thread for each launch, in the launching process.

    reads      every rank's stdout and stderr pipe, control channel and exit sentinel
    writes     the records of the ranks; the front end's sink
    tells      whoever waits on `changed` when a rank has ended
    closes     all of a rank's descriptors when the rank has ended

It holds no lock while it reads or shows. It ends when the last rank has ended.
"""

import contextlib
import logging
import math
import pickle
import selectors
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from nbmp import platforms
from nbmp.channels import Channel
from nbmp.launching.channel import EXITED, RAISED, RETURNED, SEEN, SHOWN, plain
from nbmp.launching.frontends import Chunk, Frontend, Sink
from nbmp.launching.judging import judge
from nbmp.launching.messages import Raised, RawException
from nbmp.launching.milestones import Milestones
from nbmp.launching.private import Descriptor, making
from nbmp.launching.record import RankRecord
from nbmp.launching.written.lines import RankStream
from nbmp.messages import Message

SHOW_SECONDS = 0.05
"""Output is shown at once after a pause, and at most this often in a flood."""

_log = logging.getLogger("nbmp")


class Supervisor(threading.Thread):
    """Follows the ranks of one launch to their end."""

    def __init__(
        self,
        records: Sequence[RankRecord],
        frontend: Frontend,
        sink: Sink,
        changed: threading.Condition,
        on_end: Callable[[RankRecord], None],
    ) -> None:
        super().__init__(name="nbmp-supervisor", daemon=True)
        self._changed = changed
        self._frontend = frontend
        self._sink = sink
        self._on_end = on_end
        self._oom_kills = platforms.oom_kills()
        self._waiting: list[Chunk] = []
        self._shown_at = 0.0
        self._settles_at = math.inf
        self._told = False
        self._living = set(records)
        self._milestones = None if sink.shows_progress else Milestones(records, time.monotonic())
        with making() as register:
            self._selector = selectors.DefaultSelector()
            register(self._selector)
        for record in records:
            assert record.process is not None
            self._watch(record.process.sentinel, self._end, record)
            self._watch(record.channel, self._listen, record)
            for stream in record.streams:
                self._watch(stream.pipe, self._read, record, stream)

    def run(self) -> None:
        while self._living:
            pause = self._pause()
            # what has ended comes last, so that what it said before is heard before
            for key, _ in sorted(self._selector.select(pause), key=lambda event: event[0].data[0] == self._end):
                if key.fileobj in self._selector.get_map():
                    action, *arguments = key.data
                    action(*arguments)
            now = time.monotonic()
            if self._waiting and now - self._shown_at >= SHOW_SECONDS:
                self._show()
            elif now >= self._settles_at:
                self._settle()
            if self._milestones is not None and now >= self._milestones.due:
                self._try(self._sink.write, self._milestones.lines(now))
        self._selector.close()
        # A thread that has shown something is kept for a while by ipykernel; the launch, with its descriptors, is not.
        del self._on_end, self._milestones, self._sink

    def _pause(self) -> float | None:
        """Return how long there is nothing to do if nothing comes."""
        until = min(
            self._settles_at,
            self._shown_at + SHOW_SECONDS if self._waiting else math.inf,
            self._milestones.due if self._milestones is not None else math.inf,
        )
        return None if until == math.inf else max(0.0, until - time.monotonic())

    def _watch(self, file: Any, action: Callable[..., None], *arguments: Any) -> None:
        self._selector.register(file, selectors.EVENT_READ, (action, *arguments))

    def _read(self, record: RankRecord, stream: RankStream) -> None:
        chunks, _ = stream.read()
        self._keep(record, chunks)
        if stream.at_end:
            self._selector.unregister(stream.pipe)

    def _keep(self, record: RankRecord, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            record.output.add(chunk.text)
            if chunk.stream == "stderr":
                record.last_errors.extend(chunk.text.splitlines()[-5:])
        self._waiting += chunks

    def _show(self) -> None:
        chunks, self._waiting = self._waiting, []
        self._shown_at = time.monotonic()
        self._try(self._sink.write, chunks)
        self._settle()

    def _settle(self) -> None:
        pause = self._try(self._sink.settle)
        self._settles_at = math.inf if pause is None else time.monotonic() + pause

    def _try(self, show: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return show(*arguments)
        except Exception:
            if not self._told:
                _log.exception("what ranks wrote could not be shown (said once)")
            self._told = True

    def _listen(self, record: RankRecord) -> None:
        """Take one message of a rank."""
        try:
            message = record.channel.receive(wait=False)
        except BlockingIOError:
            return
        except OSError as error:  # no descriptors for what came: whatever it is, this thread goes on
            record.raised, record.cause = _unreadable(error), error
            message = None
        if message is None:
            self._selector.unregister(record.channel)
        elif message.kind == SHOWN and not message.is_broken:
            self._display(record, message)
        else:
            self._take_outcome(record, message)

    def _display(self, record: RankRecord, message: Message) -> None:
        for stream in record.streams:  # what was written before it was shown comes before it
            self._keep(record, stream.read_all())
        self._show()
        stream = record.streams[0]
        try:
            self._sink.display(stream.rank, message.read(), stream.label)
        except Exception:
            _log.exception("what rank %d displayed could not be shown", record.rank)
        self._settle()
        with contextlib.suppress(OSError):  # it may have ended since
            record.channel.send(plain(None), SEEN)

    def _take_outcome(self, record: RankRecord, message: Message) -> None:
        record.read_since = time.monotonic()
        try:
            outcome = message.read()
        except BaseException as error:  # whatever the user's code raises, this thread goes on
            record.raised, record.cause = _unreadable(error), error
            return
        finally:
            record.read_since = None
        if message.kind == RETURNED:
            record.result, record.returned = outcome, True
        elif message.kind == EXITED:
            record.left_with = outcome
        elif message.kind == RAISED:
            record.raised = outcome
            record.cause = _original(outcome)

    def _end(self, record: RankRecord) -> None:
        assert record.process is not None
        code = record.process.exitcode
        if code is None:
            return
        self._selector.unregister(record.process.sentinel)
        self._drain(record)
        self._show()
        self._try(self._sink.end, record.streams[0].rank)
        state, failure = judge(record, code, self._frontend, self._oom_kills)
        self._close(record)
        self._living.discard(record)
        with self._changed:
            record.set_ended(state, failure)
            self._on_end(record)
            self._changed.notify_all()

    def _drain(self, record: RankRecord) -> None:
        """Take all that a rank left behind. What its own children still write is not waited for."""
        while record.channel in self._selector.get_map():
            before = record.has_outcome
            try:
                message = record.channel.receive(wait=False)
            except BlockingIOError:
                break
            except OSError as error:
                record.raised, record.cause = _unreadable(error), error
                break
            if message is None:
                break
            if message.kind == SHOWN and not message.is_broken:
                self._display(record, message)
            elif not before:
                self._take_outcome(record, message)
        files: list[Channel | Descriptor] = [record.channel, *(stream.pipe for stream in record.streams)]
        for file in files:
            if file in self._selector.get_map():
                self._selector.unregister(file)
        for stream in record.streams:
            self._keep(record, stream.finish())

    def _close(self, record: RankRecord) -> None:
        record.channel.close()
        record.lifeline.close()
        record.crash.close()
        for stream in record.streams:
            stream.pipe.close()


def _original(raised: Raised) -> BaseException | None:
    if raised.pickled is None:
        return None
    try:
        error = pickle.loads(raised.pickled)
    except BaseException:
        return None  # it travels one way only; its text is there
    return error if isinstance(error, BaseException) else None


def _unreadable(error: BaseException) -> Raised:
    text = f"{type(error).__name__}: {error}"
    raw = RawException(type(error).__name__, str(error), (), (), None, False)
    return Raised("having its result unpickled by the launching process", time.monotonic(), raw, text, None)
