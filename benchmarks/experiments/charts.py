"""Pictures of an experiment: accuracies beside the paper's, curves, and time against error."""

from __future__ import annotations

from functools import partial
from itertools import cycle

from benchmarks.experiments.lines import Line, labels
from benchmarks.experiments.plan import Experiment
from widemargin.pages import Html, picture
from widemargin.plots.canvas import NAME, literal, short

MOST_DOTS = 30  # lines of a chart that can still be read
MOST_TICKS = 6  # whose numbers stand side by side on a phone
FEWEST_ON_CURVE = 3
MARKS = "osD^vP*X"
PROBLEMS = (  # whose dual objectives can be compared: without a bias, and with one
    ("DC-SVM", "DC-SVM (early)"),
    ("LIBSVM RBF", "LIBSVM polynomial", "LaSVM", "CascadeSVM"),
)

Curves = list[tuple[str, list[tuple[float, float]]]]  # methods and their points


def charts(experiment: Experiment, data: str, lines: list[Line]) -> list[Html]:
    """Those that the lines on one data set make sense in; none where no fit has ended."""
    ended = [line for line in lines if line.accuracy is not None]
    if not ended:
        return []
    curves = _curves(experiment, ended)
    drawn = []
    if curves:
        names = ", ".join(sorted({name for _, name, _ in curves}))
        alt = f"Accuracy on {data} against {names}: {_told(ended)}"
        drawn.append(picture(partial(_draw_curves, curves), alt, (4.4, 3.2)))
    elif len(ended) <= MOST_DOTS:
        alt = f"Accuracy on {data}, ours beside the paper's: {_told(ended)}"
        size = (4.4, 0.24 * len(ended) + 1.1)
        drawn.append(picture(partial(_draw_dots, ended), alt, size))
    if len(ended) > 1:
        alt = f"Seconds of a fit against wrong rows on {data}: {_told(ended)}"
        drawn.append(picture(partial(_draw_times, ended), alt, (4.4, 3.4)))
    away = _objectives(ended)
    if away:
        nearest = min(distance for _, points in away for _, distance in points)
        alt = (f"Seconds of a fit against how far its dual objective is below the best on {data}: "
               f"down to {nearest:.1g} of it.")  # fmt: skip
        drawn.append(picture(partial(_draw_objectives, away), alt, (4.4, 3.4)))
    descents = _descents(experiment, ended)
    if descents:
        most = max(sweeps for _, points in descents for sweeps, _ in points)
        least = min(gap for _, points in descents for _, gap in points)
        alt = f"Duality gap on {data} against iterations: down to {least:.1g}, {most:.0f} at most."
        drawn.append(picture(partial(_draw_descents, descents), alt, (4.4, 3.2)))
    return drawn


def _told(lines: list[Line]) -> str:
    """The ends of the range, for those who do not see it."""
    ranked = sorted(lines, key=lambda line: line.accuracy or 0.0)
    low, high = ranked[0], ranked[-1]
    return f"from {low.accuracy:.2f} % ({low.method}) to {high.accuracy:.2f} % ({high.method})."


def _curves(experiment: Experiment, lines: list[Line]) -> list[tuple[str, str, list[Line]]]:
    """Method, parameter and lines, of methods that vary one number; a short one is none.

    None at all where they do not belong on one axis: other numbers, by other names.
    """
    found = []
    for method in experiment.methods:
        own = [line for line in lines if line.method == method.name]
        varied = [name for name, values in method.vary.items() if len(values) > 1]
        if len(varied) != 1 or len(own) < FEWEST_ON_CURVE:
            continue
        (name,) = varied
        if all(isinstance(line.parameters.get(name), int | float) for line in own):
            found.append((method.name, name, sorted(own, key=lambda ln: ln.parameters[name])))
    names = {name for _, name, _ in found}
    values = {tuple(line.parameters[name] for line in own) for _, name, own in found}
    return found if len(names) == 1 or len(values) == 1 else []


def _objectives(lines: list[Line]) -> Curves:
    """Seconds, and how far below the best of the same problem a method's dual objectives are."""
    found = []
    for uses in PROBLEMS:
        own = [line for line in lines if line.use in uses and line.detail("dual_objective")]
        best = max((line.detail("dual_objective") or 0.0 for line in own), default=0.0)
        for method in dict.fromkeys(line.method for line in own):
            points = [(line.median("fit_seconds") or 0.0,
                       1 - (line.detail("dual_objective") or 0.0) / best)
                      for line in own if line.method == method]  # fmt: skip
            below = sorted(point for point in points if point[1] > 0)
            if below:
                found.append((method, below))
    return found


def _draw_objectives(away: Curves, ax) -> None:
    """Low and left is good; the best of each problem is not on it."""
    for (method, points), mark in zip(away, cycle(MARKS), strict=False):
        ax.plot(*zip(*points, strict=True), f"{mark}-", ms=6, lw=0.8, label=short(method, 24))
    ax.set(xscale="log", yscale="log", xlabel="seconds of a fit",
           ylabel="dual objective below the best, share")  # fmt: skip
    _plain_numbers(ax)
    ax.grid(alpha=0.25)
    literal(ax.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1)))


def _descents(experiment: Experiment, lines: list[Line]) -> Curves:
    """Iterations and gaps of methods that vary the tolerance, where both were measured."""
    found = []
    for method in experiment.methods:
        own = [line for line in lines if line.method == method.name and "tol" in method.vary]
        measured = [(line.detail("iterations"), line.detail("gap")) for line in own]
        points = sorted((n, gap) for n, gap in measured if n is not None and gap)
        if len(points) >= FEWEST_ON_CURVE:
            found.append((method.name, points))
    return found


def _draw_descents(descents: Curves, ax) -> None:
    """A straight line is linear convergence."""
    for (method, points), mark in zip(descents, cycle(MARKS), strict=False):
        ax.plot(*zip(*points, strict=True), f"{mark}-", ms=5, lw=0.8, label=short(method, 24))
    ax.set(yscale="log", xlabel="iterations", ylabel="relative duality gap")
    ax.grid(alpha=0.25)
    literal(ax.legend(fontsize=8))


def _draw_curves(curves: list[tuple[str, str, list[Line]]], ax) -> None:
    for (method, name, lines), mark in zip(curves, cycle(MARKS), strict=False):
        x = [line.parameters[name] for line in lines]
        (drawn,) = ax.plot(x, [line.accuracy for line in lines], f"-{mark}", ms=5, label=method)
        printed = [(v, ln.published["accuracy"]) for v, ln in zip(x, lines, strict=True)
                   if "accuracy" in ln.published]  # fmt: skip
        if printed:
            ax.plot(*zip(*printed, strict=True), "D--", mfc="none", lw=0.8, color=drawn.get_color(),
                    label=f"{method}, paper")  # fmt: skip
    values = [line.parameters[name] for _, name, lines in curves for line in lines]
    if min(values) > 0 and max(values) > 20 * min(values):
        ax.set_xscale("log")
    names = sorted({name for _, name, _ in curves})
    ax.set_xlabel(" or ".join(names), **NAME)
    ax.set_ylabel("accuracy, %")
    ax.grid(alpha=0.25)
    literal(ax.legend(fontsize=8))


def _draw_dots(lines: list[Line], ax) -> None:
    """Accuracies need not begin at 0, so they are dots on lines and no bars."""
    heights = list(range(len(lines)))[::-1]
    for height, line in zip(heights, lines, strict=True):
        if line.difference is not None:
            ends = [line.accuracy, line.published["accuracy"]]
            ax.plot(ends, [height, height], "-", color="C7", lw=1)
    ax.plot([line.accuracy for line in lines], heights, "o", ms=7, label="here")
    printed = [(line.published["accuracy"], height)
               for height, line in zip(heights, lines, strict=True)
               if "accuracy" in line.published]  # fmt: skip
    if printed:
        ax.plot(*zip(*printed, strict=True), "D", ms=6, mfc="none", mew=1.4, label="paper")
        ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    ax.set_yticks(heights, [short(text, 28) for text in labels(lines)], **NAME)
    ax.set_ylim(-0.6, len(lines) - 0.4)
    ax.set_xlabel("accuracy, %")
    ax.locator_params(axis="x", nbins=MOST_TICKS)
    ax.grid(alpha=0.25)


def _draw_times(lines: list[Line], ax) -> None:
    """Low and left is good."""
    highest = 1.0
    methods = list(dict.fromkeys(line.method for line in lines))
    for method, mark in zip(methods, cycle(MARKS), strict=False):
        own = [line for line in lines if line.method == method]
        own.sort(key=lambda line: line.median("fit_seconds") or 0.0)
        x = [line.median("fit_seconds") for line in own]
        y = [100 - (line.accuracy or 0.0) for line in own]
        ax.plot(x, y, f"{mark}-", ms=6, lw=0.8, label=short(method, 24))
        highest = max(highest, *y)
    ax.set(xscale="log", xlabel="seconds of a fit", ylabel="wrong, %")
    _plain_numbers(ax)
    ax.set_ylim(0, 1.08 * highest)
    ax.grid(alpha=0.25)
    literal(ax.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1)))


def _plain_numbers(ax) -> None:
    """On a logarithmic axis, few, and as people write them: no 3 x 10^0 beside 4 x 10^0."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.get_xlim()
    steps = [1.0, 2.0, 5.0] if high < 100 * low else [1.0]
    ax.xaxis.set_major_locator(LogLocator(subs=steps, numticks=MOST_TICKS))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
