"""Numbers and names that documents state are those of the code."""

import inspect
import re
from pathlib import Path

import pytest

from widemargin import (
    AdditiveSVC,
    KernelSVC,
    auto,
    candidates,
    categories,
    missed_pairs,
    pairs,
    search,
)
from widemargin.additive import encoder, tables
from widemargin.kernel import (
    active_set,
    backend,
    cache,
    certificate,
    checkpoint,
    divide,
    exact,
    few_rows,
    kernels,
    levels,
    machine,
    precision,
)

DOCS = Path(__file__).parents[1] / "docs"
KERNEL, ADDITIVE = (inspect.getdoc(machine) for machine in (KernelSVC, AdditiveSVC))
STATED = [
    (KERNEL, f"Blocks of up to {active_set.WORKING_SET:,} variables"),
    (KERNEL, f"({few_rows.WORKING_SET} on up to {backend.MOST_ROWS:,} rows)"),
    (KERNEL, f"divides to clusters of about {divide.AUTO_ROWS:,} rows"),
    (KERNEL, f"whose clusters hold about {machine.EARLY_ROWS:,} rows"),
    (KERNEL, f"True samples {levels.COUPLING_SAMPLE:,} rows"),
    ("kernel.md", f"one model per cluster of about {machine.EARLY_ROWS:,} rows"),
    ("kernel.md", f"a block of up to {active_set.WORKING_SET:,} variables"),
    ("kernel.md", f"A problem on up to {backend.MOST_ROWS:,} rows"),
    ("kernel.md", f"where `tol >= {precision.DOUBLE_BELOW:.0e}`".replace("e-0", "e-")),
    ("kernel.md", f"a sample of {certificate.SAMPLE} that is drawn"),
    ("kernel.md", f"negative eigenvalue on {certificate.DEFINITE_ROWS} support vectors"),
    ("kernel.md", f"divides to clusters of about {divide.AUTO_ROWS:,} rows"),
    ("kernel.md", f"estimated from {levels.COUPLING_SAMPLE:,} rows"),
    ("kernel.md", f"every {checkpoint.EVERY:g} s the variables"),
    ("kernel.md", f"up to {exact.COPIED >> 20} MB, in double precision"),
    ("kernel.md", f"always room for {cache.LEAST_SLOTS} kernel rows"),
    ("kernel.md", f"Rows with fewer than {kernels.DENSE_FROM:.0%}".replace("%", " %")),
    (ADDITIVE, f"at most {encoder.MAX_BINS:,}"),
    (ADDITIVE, f'"auto": {encoder.AUTO_BINS}; {encoder.ICD_LEVELS} with'),
    (ADDITIVE, "smallest of " + ", ".join(map(str, tables.AUTO_RANKS))),
    *((ADDITIVE, f'"{name}"') for name in tables.APPROXIMATIONS),
    ("additive.md", f"Up to {encoder.AUTO_BINS} distinct values"),
    ("auto.md", f"on at most {search.FEW:,} rows and in at most a fifth of the time"),
    ("auto.md", f"along a path of C, on at most {search.ROWS:,} rows"),
    ("auto.md", f"This ends after {search.MOST_SETTINGS} "),
    ("auto.md", f"the best {search.CONTENDERS} candidates, or as many as there is time for"),
    ("auto.md", f"twice the rows, up to {search.MOST_ROWS:,}"),
    ("auto.md", f"on {search.ROUND_FOLDS} other folds"),
    ("auto.md", f"An RBF model of {candidates.EARLY_FROM:,} rows or more"),
    ("auto.md", f"fitted on held-out folds of at most {auto.CALIBRATION_ROWS:,} rows"),
    ("files.md", f"more than {categories._MANY_CATEGORIES} values, and more than half"),
    (inspect.getdoc(missed_pairs), f"at least {pairs._FEWEST_ROWS}"),
    (inspect.getdoc(missed_pairs), f"pairs of the {pairs._MOST_TERMS:,} most important terms"),
    (inspect.getdoc(missed_pairs), f"the best {pairs._TESTED} tested"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "said"), STATED)
def test_a_number_in_a_document_is_that_of_the_code(where, said):
    text = (DOCS / where).read_text(encoding="utf-8") if where.endswith(".md") else where
    assert said in re.sub(r"\s+", " ", text)


def test_the_shares_of_a_search():
    assert (search.FIRST_SHARE, auto.SMALL_CLASS, search.CHEAPER) == (0.2, 0.2, 0.5)
    assert (search.MARGIN, search.ROUNDS) == ({"additive": 0.03, "kernel": 0.1}, 3)
