"""How Sphinx builds the guide: `python3 dev.py docs`."""

from pygments.lexers.python import PythonLexer
from sphinx.application import Sphinx

from nbmp import __version__

project = "nbmp"
author = "nbmp developers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"nbmp {release}"
html_copy_source = False

default_role = "code"
autodoc_typehints = "none"  # the signatures of the source say it shorter than a list
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
doctest_global_setup = "import numpy as np\nimport nbmp"


def setup(app: Sphinx) -> None:
    """Colour the cells of notebooks as Python, and show a drawing in the head of a module as it stands there."""
    app.add_lexer("ipython", PythonLexer)
    app.connect("autodoc-process-docstring", as_it_stands)


def as_it_stands(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if what == "module" and any("\N{BOX DRAWINGS LIGHT HORIZONTAL}" in line for line in lines):
        lines[:] = ["::", "", *(f"    {line}" for line in lines), ""]
