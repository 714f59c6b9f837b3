"""A page about the methods: what their own words say, and which experiments have them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping

from benchmarks.competitors import COMPETITORS
from benchmarks.methods import METHODS
from widemargin.pages import Html, joined, page, section, tag


def methods_page(uses: Mapping[str, Iterable[str]]) -> str:
    """Every method; ``uses`` has the experiments that run it, of those with a page."""
    introduction = joined([
        tag("p", tag("a", "All experiments", href="index.html")),
        tag("p", "C is the weight of the loss against |w|", tag("sup", 2), " / 2 everywhere, also "
            "where a paper writes lambda = 1 / (C n)."),
    ])  # fmt: skip
    return page("Methods", introduction, [_section(name, uses.get(name, ())) for name in METHODS])


def _section(name: str, experiments: Iterable[str]) -> tuple[str, Html]:
    links = [tag("a", e, href=f"{e}.html") for e in experiments]
    runs = [tag("p", "In ", *_separated(links), class_="soft")] if links else []
    owner = "A competitor" if name in COMPETITORS else "Ours"
    source = tag("p", f"{owner}: ", tag("code", METHODS[name].__module__), class_="soft")
    return section(name, *(tag("p", text) for text in words(name)), source, *runs)


def _separated(links: list[Html]) -> list[object]:
    return [part for link in links for part in (", ", link)][1:]


def words(name: str) -> list[str]:
    """Paragraphs of its docstring before sections of parameters and examples.

    The title of a competitor's file comes first.

    >>> words("libHIK")[1]
    'ICD with three levels and C = 0.01 (PmSVM, section 5.1).'
    """
    made = METHODS[name]
    paragraphs = (inspect.getdoc(made) or "").split("\n\n")
    ends = [k for k, text in enumerate(paragraphs) if "\n---" in text or text.startswith(">>>")]
    own = paragraphs[: ends[0]] if ends else paragraphs
    if name in COMPETITORS:
        own = [(sys.modules[made.__module__].__doc__ or "").split("\n\n")[0], *own]
    return [_plain(text) for text in own if text.strip()]


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("``", "")
