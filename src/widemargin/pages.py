"""Build HTML pages: self-contained, light and dark, readable on a phone, without scripts.

Everything that is not `Html` is escaped, so names from data cannot become markup.  A policy in the
head of every page also forbids scripts and outside resources.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from widemargin.files import text_output
from widemargin.plots.canvas import new_figure

# Distinguishable on white and on black.
_COLOURS = ("#3b8ed0", "#e07b39", "#3fa65a", "#d1495b", "#8e6bbf", "#a07a62", "#d069a8", "#7f8794",
            "#a8a43a", "#2fa7b5")  # fmt: skip
_INK = "#010203"  # placeholder for the text colour, which depends on the reader's scheme
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1f24; --soft: #59616e;
  --line: #d8dce2; --heat: 31 119 180; --warn: #9a3b00 }
@media (prefers-color-scheme: dark) { :root { --paper: #16181d; --ink: #e6e8ec; --soft: #a3abb8;
  --line: #363b45; --heat: 88 166 230; --warn: #ffb27a } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem }
p, ul { max-width: 44rem }
a { color: inherit }
nav a { display: inline-block; margin: .1rem .7rem .1rem 0; color: var(--soft) }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem }
.warn { color: var(--warn); font-weight: 600 }
.scroll { overflow-x: auto; margin: .6rem 0; container-type: inline-size }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem }
caption { text-align: left; padding-bottom: .2rem; max-width: 100cqw }
th, td { padding: .2rem .7rem .2rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
th.text, td.text { text-align: left }
td.wrap { white-space: normal; overflow-wrap: normal; min-width: 9rem }
.facts td { white-space: normal }
td.heat { padding: .2rem .7rem; background: rgb(var(--heat) / calc(var(--share) * .6)) }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: 1rem 0 }
.tiles b { display: block; font-size: 1.5rem; font-weight: 600 }
.grid { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)) }
figure { margin: .6rem 0; min-width: 0 }
figure svg { display: block; width: 100%; height: auto }
figure svg text { font-family: system-ui, sans-serif !important }
figure svg * { stroke-linejoin: round; stroke-linecap: butt }
summary { cursor: pointer }
@media print { body { max-width: none } details > * { display: block } }
""".strip()


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escaped(value: object) -> Html:
    """Convert anything to text of a page.

    >>> escaped("<script>"), escaped(Html("<b>"))
    ('&lt;script&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def tag(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; ``class_`` is the attribute class, ``aria_label`` aria-label.

    >>> tag("p", "a < b", tag("b", 1), class_="soft")
    '<p class="soft">a &lt; b<b>1</b></p>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{words}>{joined(content)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    return Html("".join(map(escaped, parts)))


def section(title: str, *content: object) -> tuple[str, Html]:
    """Return a section: its title and contents."""
    return title, joined(content)


def facts(content: Mapping[str, object]) -> Html:
    """Return names and values, one per line."""
    rows = [tag("tr", tag("th", k, scope="row"), tag("td", shown(v), class_="text"))
            for k, v in content.items()]  # fmt: skip
    return tag("table", tag("tbody", *rows), class_="facts")


def table(header: Sequence[object], rows: Iterable[Sequence[object]], caption: str) -> Html:
    """Return a table that scrolls in its own box; an `Html` cell may be a ``<td>`` itself.

    Titles of text columns are left-aligned, like the text.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    texts = {k for k, column in enumerate(zip(*cells, strict=False)) if _is_text(column)}
    head = tag("tr", *(tag("th", name, scope="col", **({"class_": "text"} if k in texts else {}))
                       for k, name in enumerate(header)))  # fmt: skip
    body = [tag("tr", *row) for row in cells]
    content = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", content, class_="scroll", role="region", tabindex=0, aria_label=caption)


def _cell(value: object) -> Html:
    if isinstance(value, Html) and value.startswith("<td"):
        return value
    return tag("td", shown(value))


def _is_text(column: Iterable[Html]) -> bool:
    """Whether all non-empty cells are text."""
    filled = [cell for cell in column if cell != "<td></td>"]
    return bool(filled) and all(cell.startswith('<td class="text"') for cell in filled)


def heat(value: object, share: float) -> Html:
    """Return a cell whose background grows stronger with its share of 1."""
    return tag("td", shown(value), class_="heat", style=f"--share: {share:.3f}")


def shown(value: object) -> object:
    """Format a number for people.

    >>> shown(0.123456), shown(12345), shown("x")
    ('0.1235', '12,345', 'x')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if type(value) is int else value


def tiles(content: Mapping[str, object]) -> Html:
    """Return a few large numbers with their names."""
    every = (tag("div", tag("b", shown(v)), tag("span", k, class_="soft"))
             for k, v in content.items())  # fmt: skip
    return tag("div", *every, class_="tiles")


def grid(*content: object) -> Html:
    """Return contents side by side, as far as the page is wide enough."""
    return tag("div", *content, class_="grid")


def folded(title: str, *content: object) -> Html:
    """Return contents that unfold on a click."""
    return tag("details", tag("summary", title), *content)


def picture(draw: Callable[[Any], object], alt: str, size=(4.2, 2.8), caption: str = "") -> Html:
    """Return what a function draws on axes, as SVG in the page's colours; sizes are in inches.

    About four inches are as wide as a phone: texts stay readable there.
    """
    from cycler import cycler
    from matplotlib import rc_context

    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    plain = ("axes.facecolor", "figure.facecolor", "savefig.facecolor", "legend.facecolor")
    style: Any = dict.fromkeys(inked, _INK) | dict.fromkeys(plain, "none")
    style |= {"svg.fonttype": "none", "svg.hashsalt": "widemargin", "legend.framealpha": 0}
    style |= {"axes.prop_cycle": cycler(color=_COLOURS)}
    style |= {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9}
    with rc_context(style), warnings.catch_warnings():
        # Text stays text: a browser has fonts for all of it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure, axes = new_figure(1, 1, size)
        draw(axes[0, 0])
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    content = [_themed(file.getvalue(), alt, size)]
    if caption:
        content.append(tag("figcaption", caption))
    return tag("figure", *content)


def _themed(svg: str, alt: str, size) -> Html:
    """Remove the file header of an SVG, and make its names unique on the page."""
    prefix = f"s{hashlib.sha256(svg.encode()).hexdigest()[:8]}"
    svg = svg[svg.index(">", svg.index("<svg")) + 1 :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<(g|defs) id="[^"]*"', r"<\1", svg)
    svg = re.sub(r' id="image[0-9a-f]{10}"', "", svg)
    svg = re.sub(r'(id="|#)([mp][0-9a-f]{10})(?=["\)])', rf"\1{prefix}\2", svg)
    svg = svg.replace(_INK, "currentColor")
    width, height = (72 * inches for inches in size)
    head = (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(alt)}" '
        f'style="max-width: {1.5 * width:g}px" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return Html(f"{head}<title>{html.escape(alt)}</title>{svg.strip()}")


def page(title: str, introduction: object, sections: Sequence[tuple[str, Html]]) -> str:
    """Return a page: title, introduction, list of sections, sections."""
    links = (tag("a", name, href=f"#{anchor(name)}") for name, _ in sections)
    body = [
        tag("h1", title),
        introduction,
        tag("nav", *links, aria_label="sections"),
        tag("main", *(
            tag("section", tag("h2", name, id=anchor(name)), content) for name, content in sections
        )),
    ]  # fmt: skip
    head = (
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{_STYLE}\n</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{joined(body)}\n</body>\n</html>\n"
    )


def anchor(title: str) -> str:
    """Return the fragment that links to the section with this title.

    >>> anchor("Pairs (most)")
    'pairs-most'
    """
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def write_page(path, content: str) -> None:
    """Write the page atomically."""
    with text_output(path, "backslashreplace") as file:  # file names may contain undecodable bytes
        file.write(content)
