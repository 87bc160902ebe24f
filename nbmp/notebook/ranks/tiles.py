"""Many ranks at a glance: a tile for each, coloured by state, filled as far as it is; and what they take together."""

from html import escape
from statistics import median

from nbmp.monitoring.snapshots import DASH, LaunchSnapshot, RankSnapshot, share, size
from nbmp.notebook.ranks.columns import remark

MANY = 16
"""With more ranks there are tiles; a row has who is worth one, or is asked for."""
ROWS = 8
"""Ranks that have a row unasked, at most."""


def overview(snapshot: LaunchSnapshot, *, is_live: bool) -> str:
    """Return the tiles and the sum; live, the numbers are on the labels that lie over them."""
    shown = " ".join(_tile(rank, is_live) for rank in snapshot.ranks)
    together = summary(snapshot)
    told = f'<div class="sum">{escape(together)}</div>' if is_live or together != DASH else ""
    return f'<div class="tiles">{shown}</div>{told}'


def worth_a_row(snapshot: LaunchSnapshot) -> frozenset[int]:
    """Return those that have failed, then those that wait longest, `ROWS` at most."""
    failed = [rank for rank in snapshot.ranks if rank.group == "failed"]
    waiting = [rank for rank in snapshot.ranks if rank.wait is not None]
    waiting.sort(key=lambda rank: -rank.wait.seconds if rank.wait is not None else 0.0)
    return frozenset(rank.rank for rank in [*failed, *waiting][:ROWS])


def summary(snapshot: LaunchSnapshot) -> str:
    """Return in a line what all ranks do together."""
    parts = []
    shares = [
        (rank.progress.n / rank.progress.total, rank.rank)
        for rank in snapshot.ranks
        if rank.progress is not None and rank.progress.total
    ]
    if shares:
        (least, slowest), (most, _) = min(shares), max(shares)
        middle = median(share for share, _ in shares)
        parts.append(f"progress {least:.0%} (rank {slowest}) to {most:.0%}, median {middle:.0%}")
    cpu = [rank.cpu for rank in snapshot.ranks if rank.cpu is not None]
    if cpu:
        parts.append(f"CPU {sum(cpu) / 100:.1f} cores" if sum(cpu) >= 100 else f"CPU {share(sum(cpu))}")
    memory = [rank.memory for rank in snapshot.ranks if rank.memory is not None]
    if memory:
        parts.append(f"memory {size(sum(memory))} (PSS)")
    return " · ".join(parts) or DASH


def _tile(rank: RankSnapshot, is_live: bool) -> str:
    tip = escape(f"rank {rank.rank}: {rank.label}" + (f"\n{remark(rank)}" if remark(rank) else ""))
    done = ""
    if rank.progress is not None and rank.progress.total:
        done = f'<i style="width:{min(100.0, 100 * rank.progress.n / rank.progress.total):.0f}%"></i>'
    number = "" if is_live else rank.rank
    return f'<span class="tile {rank.group}" title="{tip}">{number}{done}</span>'
