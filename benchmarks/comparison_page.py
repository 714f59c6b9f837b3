"""The comparison on scikit-learn's data as one page: ranks, accuracies, times, gaps."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.comparison import (
    DATA,
    FIGURES,
    FOLDS,
    MACHINES,
    OURS,
    TEST_SHARE,
    Outcome,
    average_ranks,
)
from benchmarks.environment import describe_machine, versions
from widemargin.pages import Html, facts, grid, heat, page, picture, section, table, tag, write_page


def write_comparison(outcomes: list[Outcome], folder: Path) -> Path:
    """Write ``index.html``, of what there is, and return its path."""
    path = folder / "index.html"
    write_page(path, comparison_page(outcomes))
    return path


def comparison_page(outcomes: list[Outcome]) -> str:
    n = len(DATA) * len(MACHINES)
    part = f" Interrupted: {len(outcomes)} of {n} fits are here." if len(outcomes) < n else ""
    introduction = tag(
        "p",
        "widemargin's machines and scikit-learn's on the data that comes with scikit-learn. "
        "These sets are small: a point is often a row or two, and times are milliseconds.",
        part,
    )
    sections = [section("Overview", _overview(outcomes), *_ranks(outcomes))]
    for data in dict.fromkeys(o.data for o in outcomes):
        own = [o for o in outcomes if o.data == data]
        sections.append(section(data, _table(own), grid(_bars(own), _times(own))))
    sections.append(section("How it was measured", *_method(outcomes)))
    sections.append(section("Environment", facts({**describe_machine(), **versions()})))
    return page("widemargin: a quick comparison", introduction, sections)


def _overview(outcomes: list[Outcome]) -> Html:
    """Accuracies by data and machine; the deeper, the nearer to the best of the row."""
    known = {(o.data, o.machine): o.accuracy for o in outcomes}
    rows = []
    for data in dict.fromkeys(o.data for o in outcomes):
        own = [a for (d, _), a in known.items() if d == data]
        reach = max(max(own) - min(own), 1e-9)
        cells = (known.get((data, machine)) for machine in MACHINES)
        rows.append(
            [
                data,
                *("" if a is None else heat(f"{a:.2f}", 1 - (max(own) - a) / reach) for a in cells),
            ]
        )
    return table(["test rows right, %", *MACHINES], rows, "Mean over splits")


def _ranks(outcomes: list[Outcome]) -> list[Html]:
    ranks = average_ranks(outcomes)
    if not ranks:
        return []
    told = ", ".join(f"{machine} {rank:.2f}" for machine, rank in ranks.items())
    alt = f"Average rank by accuracy, 1 is best: {told}."
    draw = partial(_draw_bars, list(ranks), list(ranks.values()), "average rank by accuracy")
    return [picture(draw, alt, (4.6, 2.2), "1 is best.")]


def _table(own: list[Outcome]) -> Html:
    rows = [[o.machine, *o.figures] for o in own]
    return table(["machine", *FIGURES], rows, f"{own[0].data}, {len(own[0].fits)} splits")


def _bars(own: list[Outcome]) -> Html:
    wrong = [100 - o.accuracy for o in own]
    names = [o.machine for o in own]
    told = ", ".join(f"{name} {w:.2f} %" for name, w in zip(names, wrong, strict=True))
    draw = partial(_draw_bars, names, wrong, "test rows wrong, %")
    return picture(draw, f"Test rows wrong on {own[0].data}: {told}.", (4.4, 2.2))


def _times(own: list[Outcome]) -> Html:
    seconds = [o.median("fit_seconds") or 0.0 for o in own]
    names = [o.machine for o in own]
    told = ", ".join(f"{name} {s:.3g} s" for name, s in zip(names, seconds, strict=True))
    draw = partial(_draw_dots, names, seconds)
    return picture(draw, f"Seconds of a fit on {own[0].data}: {told}.", (4.4, 2.2))


def _draw_bars(names: list[str], values: list[float], label: str, ax) -> None:
    """Ours stand out by colour, and by their names."""
    heights = range(len(names))[::-1]
    ax.barh(heights, values, height=0.6, color=["C0" if n in OURS else "C7" for n in names])
    ax.set_yticks(heights, names)
    ax.set_xlabel(label)


def _draw_dots(names: list[str], seconds: list[float], ax) -> None:
    """Dots: a logarithmic scale has no zero for bars to begin at."""
    heights = range(len(names))[::-1]
    for height, name, value in zip(heights, names, seconds, strict=True):
        ax.plot(value, height, "o", ms=8, color="C0" if name in OURS else "C7")
    ax.set_yticks(heights, names)
    ax.set(xscale="log", xlabel="seconds of a fit")
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.grid(alpha=0.25)


def _method(outcomes: list[Outcome]) -> list[Html]:
    splits = len(outcomes[0].fits)
    return [
        tag(
            "p",
            f"{splits} random splits, {100 * TEST_SHARE:.0f} % of the rows to score. C of "
            f"every SVM and the learning rate of the trees are the best of a grid in {FOLDS}-fold "
            "cross-validation of the training rows; a star says that a split chose the end of "
            "its grid. AdditiveSVC scales features itself, the other SVMs get standardised ones; "
            "all else is as it comes.",
        ),
        tag(
            "p",
            "One thread for all. Seconds are those of a fit with the chosen value, the least "
            "of three (a fit of more than a second is timed once), the median over splits; "
            "the spread is the standard deviation over splits. The gap is the largest "
            "relative duality gap, from a peer's own coefficients: SVC of several classes, and "
            "trees, have none that could be told.",
        ),
    ]
