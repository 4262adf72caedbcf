"""The site, `make docs`: the documents of the repository where they lie, in one tree.

The source directory is the root of the repository, so that a relative link between two documents
is the same on the site and where the repository is hosted.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "pep-variants"
author = "the authors of pep-variants"
version = release = (ROOT / "VERSION").read_text("utf-8").strip()

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "build_documents",
    "command_help",
    "folder_links",
    "known_machines",
    "public_constants",
    "selector_page",
]
needs_sphinx = "9"
nitpicky = True
# The types of the standard library and of `packaging`, and internal modules, have no page here.
_PUBLIC = "pep_variants|resolvelib_variants|variants_(catalog|index|plugins|proxy)"
nitpick_ignore_regex = [("py:.*", rf"(?!({_PUBLIC})\.[A-Za-z_]+$).*")]

root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = [
    "*.md",
    "docs/**.md",
    "packages/*/*.md",
    "pip-patch/README.md",
    "resolver-ext/README.md",
    "conformance/**.md",
    "integration-tests/hostile/README.md",
]
# docs/index.md includes docs/README.md. The others are pruned: they take time to walk.
exclude_patterns = ["docs/README.md", ".*", "build", "dist", "**/src", "**/tests", "**/__pycache__"]
templates_path = ["_templates"]

myst_heading_anchors = 6
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]

smartquotes = False  # options keep their dashes, values their quotes
default_role = "py:obj"  # of docstrings
napoleon_use_ivar = True  # else it describes the fields of a dataclass twice
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
add_module_names = False

# The button copies what is typed: neither prompts nor what commands print.
copybutton_prompt_text = r"[$>] "
copybutton_prompt_is_regexp = True
copybutton_here_doc_delimiter = "EOF"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"pep-variants {version}"
html_additional_pages = {"index": "to_index.html"}  # the root document is in docs
html_show_copyright = False
html_search_scorer = str(Path(__file__).parent / "_ext" / "search_scorer.js")
html_copy_source = False
html_show_sourcelink = False
