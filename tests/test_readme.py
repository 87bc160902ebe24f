"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_programs_of_the_readme_print_what_it_says(start_method: str, tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
    (promised,) = re.findall(r"print\(table\) +# (.*)", program)
    (squares,) = re.findall(r"print\(squares\) +# (.*)", program)
    (count,) = re.findall(r"print\(counter.value\) +# (.*)", program)
    script = tmp_path / "program.py"
    script.write_text(program.replace("def work", f"mp.set_start_method({start_method!r})\n\n\ndef work"))
    lines = subprocess.check_output([sys.executable, script], text=True).splitlines()
    assert lines == [str([f"rank {rank} is done" for rank in range(4)]), promised, squares, count]


def test_files_of_the_readme_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert target.startswith("https:") or (ROOT / target).exists(), target
