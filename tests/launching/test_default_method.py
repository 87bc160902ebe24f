"""The start method that is taken when none is asked for, with a real OpenMP pool in the process."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scripts import output

POOL = """
    import sys, warnings
    import numpy as np
    import nbmp

    def hello(rank): return rank

    print(nbmp.default_start_method().method)
    from sklearn.cluster import KMeans
    print(nbmp.default_start_method().method)          # libgomp is loaded, but has no threads yet
    KMeans(4, n_init=1).fit(np.random.rand(20_000, 8))
    choice = nbmp.default_start_method()
    print(choice.method, "|", choice.reason)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert nbmp.launch(hello, nprocs=2, start_method="fork") == [0, 1]
    print(len(caught), caught[0].category.__name__, caught[0].message)
"""


@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn, which brings libgomp, is not installed")
def test_a_live_openmp_pool_moves_the_default_away_from_fork_and_an_explicit_fork_warns_once(tmp_path: Path) -> None:
    before, loaded, alive, warned = output(tmp_path, POOL).splitlines()
    assert (before, loaded) == ("fork", "fork")
    assert alive.startswith("forkserver | an OpenMP thread pool (libgomp) is alive")
    assert warned.startswith("1 RuntimeWarning fork was asked for, but an OpenMP thread pool")
