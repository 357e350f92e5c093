"""How Sphinx builds the site: ``make docs``, without network; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ranktilt import __version__  # noqa: E402
from scripts import docs_site  # noqa: E402

project = "RankTilt"
author = copyright = "The RankTilt authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "index"
smartquotes = False
html_theme = "furo"
html_title = f"RankTilt {__version__}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: Any) -> None:
    """Write the pages of the command line before, and the texts for language models after the build."""
    app.connect("builder-inited", lambda app: docs_site.write_command_pages(Path(app.srcdir)))
    app.connect("source-read", docs_site.name_files)
    app.connect("doctree-resolved", docs_site.set_dashes)
    app.connect("build-finished", docs_site.write_llms)
