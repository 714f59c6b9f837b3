"""Sphinx's configuration of the site; tools/site_source.py makes the folder that it reads."""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer

import widemargin

ROOT = Path(__file__).parents[1]

project = "widemargin"
author = "The widemargin developers"
copyright = author
version = release = widemargin.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autosummary_generate = True
templates_path = [str(ROOT / "docs" / "_templates")]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme = "pydata_sphinx_theme"
html_title = f"widemargin {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "pictures/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "pictures/logo.svg",
        "image_dark": "pictures/logo.svg",
        "alt_text": "widemargin, start page",
        "text": f"widemargin {version}",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
# A list of pages beside the text, where there are any.
html_sidebars = {page: [] for page in ("index", "start", "how-it-works", "changelog")}
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "thumbnail_size": (480, 340),
    "min_reported_time": 1e6,
    "write_computation_times": False,
    "doc_module": ("widemargin",),
    "backreferences_dir": "api/backreferences",
}


def plain_docstrings(app, what, name, thing, options, lines):
    """Make text of what is no markup: |w|, names that end in _, references to other guides."""
    changes = {
        r":ref:`([^`<]+?)\s*(?:<[^`]+>)?`": r"\1",
        r":(?:term|math):`([^`<]+?)\s*(?:<[^`]+>)?`": r"``\1``",
        r"(?<![`\w*])([a-zA-Z]\w*)_(?![`\w*])": r"\1\\_",
        r"(?<!\\)\|": r"\\|",
    }
    for old, new in changes.items():
        literal = r"^\s*(>>>|\.\.\.)" if ":" in old else r"``|^\s*(>>>|\.\.\.)"
        is_text = [not re.search(literal, line) for line in lines]
        pairs = zip(lines, is_text, strict=True)
        lines[:] = [re.sub(old, new, line) if text else line for line, text in pairs]


def with_picture_first(app, docname, source):
    """Show the picture of an example above its program, too."""
    name = docname.removeprefix("gallery/plot_")
    if name != docname:
        image = f"/gallery/images/sphx_glr_plot_{name}_001.png"
        shown = f"\\1\n.. image:: {image}\n   :alt: {name.replace('_', ' ')}\n"
        source[0] = re.sub(r"(\n=+\n)", shown, source[0], count=1)


def setup(app):
    app.add_lexer("mermaid", TextLexer)  # code hosts draw it; here it is text
    app.connect("autodoc-process-docstring", plain_docstrings)
    app.connect("source-read", with_picture_first)
