"""Sphinx's configuration: pages in Markdown, furo's light and dark theme, tables and reference from the package itself."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site"))

project = "jitgrad"
author = "The jitgrad developers"
copyright = author
version = release = version_of("jitgrad")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "op_reference", "name_reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["build"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "attrs_inline"]

# Every reference that a page or a docstring writes must lead somewhere; names in signatures need not (``int``, ``Any``).
nitpicky = True
nitpick_ignore_regex = [(r"py:(class|obj|data|exc|meth|func)", r".*")]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
default_role = "literal"
highlight_language = "python"
suppress_warnings = ["misc.highlighting_failure"]  # generated kernels and IR are shown as they are

html_theme = "furo"
html_title = "jitgrad"
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
# The text colours of the examples are readable on both backgrounds.
pygments_style = "friendly"
pygments_dark_style = "monokai"
