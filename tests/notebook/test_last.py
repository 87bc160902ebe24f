"""The last launch of a notebook, after its cell has ended."""

from __future__ import annotations

from tests.notebook.kernels import Kernel


def test_how_ranks_ended_can_be_looked_at_after_the_cell(kernel: Kernel) -> None:
    kernel.run("import nbmp\nnbmp.launch(print, nprocs=2);")
    assert kernel.run("[rank.state for rank in nbmp.last_launch().ranks]").value == "['done', 'done']"
    kernel.run("%%mpspawn -n 3\n1 / (rank - 1)", fails=True)
    assert kernel.run("nbmp.last_launch().ranks[1].state").value == "'raised'"


def test_memory_of_results_is_free_when_the_notebook_lets_them_go(kernel: Kernel) -> None:
    kernel.run("import gc, nbmp\nmade = nbmp.launch(lambda rank: nbmp.ones(1_000_000), nprocs=2)")
    assert kernel.run("nbmp.last_launch().results").value == "[None, None]"
    kernel.run("%%mpspawn -n 2 --out taken\nnbmp.ones(1_000_000);")
    assert kernel.run("sum(map(nbmp.is_shared, made + taken))").value == "4"
    assert kernel.run("nbmp.last_launch().results").value == "[None, None]"
