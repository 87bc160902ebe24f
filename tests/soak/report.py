"""What a soak has seen, and how it is told."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Counts and findings of one soak."""

    seed: int
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """How long the operations of each name took, their checks left out."""
    counts: Counter[str] = field(default_factory=Counter)
    """What the operations counted: ranks, messages, kills, ..."""
    findings: list[str] = field(default_factory=list)
    """Hangs, failures and leaks, with the number of the operation."""
    gauges: list[dict[str, Any]] = field(default_factory=list)
    """What the subject held, from time to time."""

    def ended(self, told: dict[str, Any]) -> None:
        """Take in what the subject tells of an operation that has ended."""
        name = f"operation {told['number']}, {told['name']}"
        self.seconds[told["name"]].append(told["seconds"])
        self.counts.update(told["counts"])
        if told["failure"]:
            self.findings.append(f"FAILED: {name}\n{told['failure']}")
        if told["left"]:
            self.findings.append(f"LEFT BEHIND: {name}\n  " + "\n  ".join(told["left"]))

    def hung(self, begun: dict[str, Any], stacks: str) -> None:
        self.findings.append(f"HANG: operation {begun['number']}, {begun['name']}\n{stacks}")

    def died(self, begun: dict[str, Any] | None, status: int) -> None:
        during = f"operation {begun['number']}, {begun['name']}" if begun else "no operation"
        self.findings.append(f"DIED: the subject, with status {status}, in {during}")

    def text(self) -> str:
        return "\n".join([*self._operations(), *self._held(), *self._found()])

    def _operations(self) -> list[str]:
        lines = [f"soak with seed {self.seed}: {sum(map(len, self.seconds.values()))} operations"]
        for name, took in sorted(self.seconds.items()):
            median = sorted(took)[len(took) // 2]
            lines.append(f"  {name:24s} {len(took):6d}   median {median:6.2f} s   longest {max(took):6.2f} s")
        return [*lines, "  " + ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))]

    def _held(self) -> list[str]:
        shown = self.gauges[:: max(1, len(self.gauges) // 12)] + self.gauges[-1:]
        return ["held by the subject", *("  " + "  ".join(f"{k} {v}" for k, v in gauge.items()) for gauge in shown)]

    def _found(self) -> list[str]:
        kinds = Counter(finding.partition(":")[0] for finding in self.findings)
        told = ", ".join(f"{count} {kind.lower()}" for kind, count in kinds.items())
        return ["", *self.findings, f"findings: {told or 'none'}"]
