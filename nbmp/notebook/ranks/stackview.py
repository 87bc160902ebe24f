"""Where ranks are, and where one failed, as HTML: cell, line and source."""

from collections.abc import Iterable, Sequence

from nbmp.launching.where.stacks import RankStack
from nbmp.notebook.live.ansi import html
from nbmp.reports import COLOURS, RankFailure, exception_lines, runs, stack_lines


def error_html(failure: RankFailure) -> str:
    """Return what a rank failed of: message, its own frames with source, the likely reason."""
    lines = [f"{COLOURS.bold}{failure.summary}{COLOURS.off}"]
    if failure.stage != "running its function":
        lines.append(f"It was {failure.stage}.")
    if failure.report is not None:
        lines += exception_lines(failure.report, "", COLOURS)
    elif failure.stack:
        lines += stack_lines(failure.stack, "", COLOURS)
    if failure.hint:
        lines.append(failure.hint)
    return _box("err", lines)


def stack_html(stack: RankStack) -> str:
    """Return where one rank is, all its threads with code of the user's."""
    return _box("stack", [stack.text(colour=True)])


def stacks_html(stacks: Sequence[RankStack], at: str) -> str:
    """Return where ranks were at a moment, `00:12`; those that were at the same place are told together."""
    together: dict[tuple[object, ...], list[RankStack]] = {}
    for stack in stacks:
        together.setdefault(_place(stack), []).append(stack)
    texts = map(_together, sorted(together.values(), key=len, reverse=True))
    return _box("stack", [f"at {at}:", "\n\n".join(texts) or "no ranks ran"])


def _together(stacks: Sequence[RankStack]) -> str:
    first = stacks[0]
    if len(stacks) == 1:
        return first.text(colour=True)
    numbers = ranges(stack.rank for stack in stacks)
    head = f"{COLOURS.purple}{first.kind}s {numbers}{COLOURS.off} {_state(first)}"
    return "\n".join([head, *([] if first.unknown else first.text(colour=True).splitlines()[1:])])


def _place(stack: RankStack) -> tuple[object, ...]:
    main = stack.main
    if main is None:
        return (stack.state, stack.unknown)
    return (main.frames, main.inside, main.waits, main.unknown, stack.state)


def _state(stack: RankStack) -> str:
    if stack.unknown:
        return stack.unknown
    waits = stack.main.waits if stack.main is not None else ""
    return f"wait for {waits}" if waits else f"are {stack.state}"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as people write them: `0-2, 5`."""
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}\N{EN DASH}{run[-1]}" for run in runs(numbers))


def _box(kind: str, lines: Sequence[str]) -> str:
    return f'<pre class="{kind}">{html(chr(10).join(lines))}</pre>'
