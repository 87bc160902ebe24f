"""What a rank loads: only what its task needs."""

from __future__ import annotations

from pathlib import Path

from tests import scripts

LISTING = """
    import sys
    import nbmp
    WITH

    def noop(rank):
        import sys
        return sorted({name.partition(".")[0] for name in sys.modules})

    for loaded in nbmp.launch(noop, (), 2, start_method=sys.argv[1]):
        print(*loaded)
"""


def loaded(folder: Path, method: str, more: str = "") -> list[set[str]]:
    lines = scripts.output(folder, LISTING.replace("WITH", more), method).splitlines()
    assert len(lines) == 2
    return [set(line.split()) for line in lines]


def test_rank_loads_no_notebook_and_no_cupy(method: str, tmp_path: Path) -> None:
    for modules in loaded(tmp_path, method):
        assert not modules & {"IPython", "ipykernel", "ipywidgets", "cupy", "matplotlib", "psutil", "asyncio", "zmq"}


def test_new_interpreter_loads_what_the_launching_process_has_only_if_needed(tmp_path: Path) -> None:
    more = "import IPython, ipywidgets, numpy"
    for method in ("forkserver", "spawn"):
        for modules in loaded(tmp_path, method, more):
            assert not modules & {"IPython", "ipykernel", "ipywidgets", "cupy"}


def test_spawned_rank_of_a_module_loads_neither_numpy_nor_cloudpickle(tmp_path: Path) -> None:
    (tmp_path / "light.py").write_text("import sys\ndef noop(rank):\n    return sorted(sys.modules)\n")
    source = "import nbmp, light\nprint(*nbmp.launch(light.noop, start_method='spawn')[0])"
    modules = set(scripts.output(tmp_path, source).split())
    assert "light" in modules
    assert not modules & {"numpy", "cloudpickle", "IPython", "ipywidgets", "cupy", "threadpoolctl"}


def test_package_is_imported_without_numpy_and_notebook(tmp_path: Path) -> None:
    modules = set(scripts.output(tmp_path, "import sys, nbmp\nprint(*sys.modules)").split())
    assert not modules & {"numpy", "cloudpickle", "IPython", "ipywidgets", "psutil"}


def test_every_public_name_is_there(tmp_path: Path) -> None:
    source = "import nbmp\nprint(all(getattr(nbmp, name) is not None for name in nbmp.__all__), len(nbmp.__all__))"
    said, count = scripts.output(tmp_path, source).split()
    assert said == "True"
    assert int(count) > 20
