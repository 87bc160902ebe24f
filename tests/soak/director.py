"""The watch over the subject: an operation ends in time, or all stacks are taken down and what it started is ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from tests import scripts
from tests.soak import dumping
from tests.soak.report import Report

START_SECONDS = 60.0
END_SECONDS = 30.0
OWN_SHM = ["unshare", "-m", "bash", "-c", 'mount -t tmpfs -o size=1g tmpfs /dev/shm && exec "$0" "$@"']
"""Gives the subject a /dev/shm of its own: others leave names in the machine's meanwhile."""


class Director:
    def __init__(
        self, seed: int, seconds: float, first: int = 0, count: int = 10**9, names: Sequence[str] = ()
    ) -> None:
        self.report = Report(seed)
        self._until = time.monotonic() + seconds
        self._next, self._last = first, first + count
        self._names = list(names)
        self._folder = Path(tempfile.mkdtemp(prefix="nbmp-soak-"))
        self._log = open(self._folder / "output", "wb")  # noqa: SIM115 - closed in run
        (self._folder / "stacks").touch()
        (self._folder / "temporary").mkdir()

    def run(self) -> Report:
        """Run subjects, one after another if one hangs or dies, until the time is up."""
        try:
            while time.monotonic() < self._until and self._next < self._last:
                self._one_subject()
            if left := os.listdir(self._folder / "temporary"):
                self.report.findings.append(f"LEFT BEHIND: at the end, temporary files: {left}")
        finally:
            self._log.close()
            if not self.report.findings:
                shutil.rmtree(self._folder)
            else:
                print(f"what was printed meanwhile: {self._folder}/output")
        return self.report

    def _one_subject(self) -> None:
        ours, theirs = os.pipe()
        subject = self._start(theirs)
        os.close(theirs)
        try:
            self._listen(subject, ours)
        finally:
            os.close(ours)
            self._end(subject)

    def _start(self, tell: int) -> subprocess.Popen[bytes]:
        settings = {
            "seed": self.report.seed,
            "tell": tell,
            "first": self._next,
            "count": self._last - self._next,
            "seconds": max(0.0, self._until - time.monotonic()),
            "names": self._names,
        }
        before = OWN_SHM if os.getuid() == 0 and shutil.which("unshare") else []
        return subprocess.Popen(
            [*before, sys.executable, "-m", "tests.soak.subject", json.dumps(settings)],
            cwd=scripts.ROOT,
            env=scripts.environment(
                TMPDIR=str(self._folder / "temporary"), OPENBLAS_NUM_THREADS="1", **{dumping.FOLDER: str(self._folder)}
            ),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=(tell,),
            start_new_session=True,
        )

    def _listen(self, subject: subprocess.Popen[bytes], lines: int) -> None:
        """Take in what it tells until it has ended, or hangs."""
        begun: dict[str, Any] | None = None
        rest, deadline = b"", time.monotonic() + START_SECONDS
        while True:
            ready = select.select([lines], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                self.report.hung(begun or {"number": -1, "name": "start or end"}, self._stacks(subject.pid))
                return
            piece = os.read(lines, 1 << 16)
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                told = json.loads(line)
                begun, deadline = self._take(told, begun)
        try:
            status = subject.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.report.hung({"number": -1, "name": "exit"}, self._stacks(subject.pid))
            return
        if status != 0:
            self.report.died(begun, status)
        elif begun is None:
            self._next = self._last

    def _take(self, told: dict[str, Any], begun: dict[str, Any] | None) -> tuple[dict[str, Any] | None, float]:
        """Return which operation is under way, and until when the next line must come."""
        kind = told.pop("kind")
        if kind == "begun":
            self._next = told["number"] + 1
            return told, time.monotonic() + told["limit"]
        if kind == "ended":
            self.report.ended(told)
            begun = None
            print(".", end="", flush=True)
        else:
            self.report.gauges.append(told)
        return begun, time.monotonic() + START_SECONDS

    def _stacks(self, pid: int) -> str:
        return dumping.dump(dumping.below(pid), self._folder)

    def _end(self, subject: subprocess.Popen[bytes]) -> None:
        """End the subject and what it started, all of it known by its temporary folder; a survivor is a finding."""
        for process in ours if (ours := self._processes()) and subject.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        subject.wait()
        left = psutil.wait_procs(self._processes(), timeout=END_SECONDS)[1]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                self.report.findings.append(f"LEFT BEHIND: a process after the end: {process.pid} {process.cmdline()}")
                process.kill()

    def _processes(self) -> list[psutil.Process]:
        """Return the processes that were started with our variable in their environment."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(dumping.FOLDER) == str(self._folder):
                    found.append(process)
        return found
