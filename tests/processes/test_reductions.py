"""Shared arrays through the standard library's own channels, once that was asked for. In programs of their own."""

from __future__ import annotations

from pathlib import Path

from tests.scripts import output

PRELUDE = """
    import sys, multiprocessing
    import numpy as np
    import nbmp
    from tests.processes import reductions

    context = multiprocessing.get_context(sys.argv[1])
    shared, private = nbmp.zeros((3, 4)), np.zeros(5)
"""


def test_nothing_is_taught_until_it_is_asked_for(tmp_path: Path) -> None:
    source = """
        import numpy as np, nbmp, nbmp.reductions, nbmp.pool, nbmp.context
        from multiprocessing.reduction import ForkingPickler
        nbmp.launch(print, nprocs=1, start_method="forkserver")
        print(np.ndarray in ForkingPickler._extra_reducers)
        nbmp.init_reductions()
        print(np.ndarray in ForkingPickler._extra_reducers)
    """
    assert output(tmp_path, source).splitlines()[-2:] == ["False", "True"]


def test_shared_arrays_go_by_handle_and_private_ones_by_value(method: str, tmp_path: Path) -> None:
    source = (
        PRELUDE
        + """
        nbmp.reductions.init_reductions()
        if __name__ == "__main__":
            with context.Pool(1) as pool:
                views = [shared, shared[::-1, 1:3], shared.T]
                print(pool.map(reductions.fill, [(view, n) for n, view in enumerate(views, 1)]))
                print(shared.tolist())
                pool.apply(reductions.fill, ((private, 9),))
            print(private.tolist())
            requests, answers = context.Queue(), context.Queue()
            process = context.Process(target=reductions.fill_and_return, args=(requests, answers))
            process.start()
            requests.put(shared)
            back = answers.get()
            back[0, 0] = -1
            print(shared[0].tolist(), nbmp.is_shared(back))
            requests.put(None)
            process.join()
    """
    )
    told = output(tmp_path, source.replace("\n        ", "\n    "), method).splitlines()
    assert told[1] == str([[3.0] * 4] * 3)
    assert told[2] == str([0.0] * 5)
    assert told[3] == "[-1.0, 5.0, 5.0, 5.0] True"


def test_read_only_arrays_stay_so(tmp_path: Path) -> None:
    source = (
        PRELUDE
        + """
        nbmp.init_reductions()
        shared.flags.writeable = False
        reader, writer = context.Pipe(False)
        writer.send((shared, shared[1:]))
        whole, part = reader.recv()
        print(whole.flags.writeable, np.shares_memory(whole, shared), np.shares_memory(whole, part), part.shape)
    """
    )
    assert output(tmp_path, source.replace("\n        ", "\n    "), "fork") == "False True True (2, 4)\n"
