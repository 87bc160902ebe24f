"""`%%mpspawn --gpus`: a GPU for each rank. What a rank sees is a variable, so no GPU is needed here."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

BODY = "import os\nos.environ['CUDA_VISIBLE_DEVICES']"


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ("--gpus", "['4', '5', '4']"),
        ("--gpus all", "['4', '5', '4']"),
        ("--gpus 0,7", "['0', '7', '0']"),
        ("--start-method spawn --gpus GPU-1a", "['GPU-1a', 'GPU-1a', 'GPU-1a']"),
        ("", "['4,5', '4,5', '4,5']"),
    ],
)
def test_each_rank_sees_its_own(kernel: Kernel, options: str, seen: str) -> None:
    kernel.run("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '4,5'")
    assert kernel.run(f"%%mpspawn -n 3 {options}\n{BODY}").value == seen


@pytest.mark.parametrize("wrong", ["one", "0;1", "'0, '"])
def test_what_is_no_list_of_gpus_is_named(kernel: Kernel, wrong: str) -> None:
    cell = kernel.run(f"%%mpspawn -n 2 --gpus {wrong}\npass", fails=True)
    assert "UsageError: %%mpspawn: --gpus needs GPUs, such as 0,1, not" in cell.error


def test_without_a_gpu_the_error_says_so(kernel: Kernel) -> None:
    kernel.run("import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''")
    told = kernel.run("%%mpspawn --gpus\npass", fails=True).error
    assert told.startswith("UsageError: %%mpspawn: --gpus: there is no NVIDIA GPU that this process may use")
    assert len(told.splitlines()) == 1
