"""Draw the pictures of docs/pictures, all or those named.

Usage: python tools/pictures.py [NAME ...]

Schemes are drawn from boxes, arrows and words; what shows data is computed, or read from measured
tables, when this runs.
"""

import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from sklearn.datasets import load_breast_cancer, load_digits, make_moons

from widemargin import AdditiveSVC, KernelSVC, OneClassSVM

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
BLUE, RED, GREY, INK, PALE = "#1b5e9e", "#c0392b", "#6b7280", "#1c2127", "#e8f0f8"
PALETTE = ["#1b5e9e", "#e08214", "#2e8b57", "#8e44ad", "#c0392b", "#5d8aa8", "#b8860b", "#6b7280"]
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})


# ------------------------------------------------------------------ boxes, arrows, words


def scheme(width: float, height: float):
    """A figure without axes, measured in units of a fifth of an inch."""
    figure, ax = plt.subplots(figsize=(width / 5, height / 5), layout="constrained")
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return figure, ax


def box(ax, x, y, width, height, text, *, fill=PALE, edge=BLUE, size=11, bold=False):
    shape = "round,pad=0,rounding_size=0.35"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, fc=fill, ec=edge, lw=1.4))
    words(ax, x + width / 2, y + height / 2, text, size=size, bold=bold)


def words(ax, x, y, text, *, size=11, colour=INK, bold=False, ha="center"):
    weight = "bold" if bold else "normal"
    ax.text(x, y, text, ha=ha, va="center", fontsize=size, color=colour, weight=weight)


def arrow(ax, start, end, text="", *, colour=GREY, bend=0.0):
    style = {"arrowstyle": "-|>", "mutation_scale": 14, "lw": 1.6, "color": colour}
    ax.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", **style))
    if text:
        words(ax, (start[0] + end[0]) / 2, max(start[1], end[1]) + 0.7, text, size=9, colour=GREY)


def cells(ax, x, y, values, *, size=1.5, cmap="Blues", show=None, marked=()):
    """A small matrix of coloured cells, its first row on top; those marked have a frame."""
    shades = 0.1 + 0.7 * np.abs(values) / np.abs(values).max()
    colours = matplotlib.colormaps[cmap](shades)
    for (i, j), value in np.ndenumerate(values):
        at = (x + j * size, y - i * size)
        edge, width = (RED, 2.2) if i in marked else ("white", 1)
        ax.add_patch(Rectangle(at, size, size, fc=colours[i, j], ec=edge, lw=width))
        if show is not None:
            ink = "white" if shades[i, j] > 0.5 else INK
            words(ax, at[0] + size / 2, at[1] + size / 2, show.format(value), size=8, colour=ink)


# ------------------------------------------------------------------ how it works


def lookups():
    """A row of values becomes codes; a pair of small tables replaces the kernel."""
    figure, ax = scheme(46, 18)
    bins = np.array([0.05, 0.2, 0.35, 0.5, 0.7, 0.9])
    kernel = np.minimum.outer(bins, bins)
    values, vectors = np.linalg.eigh(kernel)
    table = (vectors * np.sqrt(values))[:, :-3:-1]
    table *= np.sign(table[-1])
    words(ax, 3.5, 17, "one row", bold=True)
    cells(ax, 1, 14, np.array([[0.36], [0.07], [0.93]]), show="{:.2f}", size=2)
    for k, name in enumerate(["petal", "stem", "leaf"]):
        words(ax, 4.2, 15 - 2 * k, name, ha="left", size=9, colour=GREY)
    arrow(ax, (7.2, 13), (10, 13), "bins")
    words(ax, 12, 17, "its codes", bold=True)
    cells(ax, 11, 14, np.array([[2], [0], [5]]), show="{:.0f}", size=2)
    arrow(ax, (13.8, 13), (17.4, 13), "look up")
    words(ax, 19.8, 17, "table L", bold=True)
    cells(ax, 18, 14.2, table, size=1.8, show="{:.2f}", marked=(0, 2, 5))
    words(ax, 19.8, 3.9, "2 numbers\nfor each bin", size=9, colour=GREY)
    words(ax, 23.2, 11.5, "·", size=28)
    words(ax, 26.2, 17, "weights w", bold=True)
    cells(ax, 24.5, 14, np.array([[0.3, 0.7], [0.6, 0.2], [0.5, 0.9]]), size=1.8, cmap="Oranges")
    words(ax, 26.2, 7.8, "2 numbers\nfor each feature", size=9, colour=GREY)
    arrow(ax, (29, 13), (32, 13), "add up")
    box(ax, 32.4, 11.4, 12.6, 3.2, "decision  g(x) = Σ L[code]·w", bold=True, size=10)
    box(ax, 24.2, 0.8, 20.8, 4.6, "", fill="white", edge=GREY)
    words(ax, 34.6, 4.2, "the same tables, during training", size=9, colour=GREY)
    words(ax, 34.6, 2.3, "a step on one row adds  Δα y · R[code]  to w", size=10)
    words(ax, 9, 5.6, "min(x, y) on 6 bins is a 6 by 6 matrix K.", size=10)
    words(ax, 9, 3.9, "Its best factor of rank 2:  K ≈ L Rᵀ", size=10)
    words(
        ax,
        9,
        2.2,
        "Smooth kernels need 3 or 4 numbers\nfor an error of 0.1 %, min up to 16.",
        size=9,
        colour=GREY,
    )
    return figure


def lanes():
    """Sixteen classes stand side by side in the lanes of a vector."""
    figure, ax = scheme(40, 11)
    rng = np.random.default_rng(3)
    words(ax, 6, 9.8, "one value of one row", bold=True)
    box(ax, 2.5, 6.2, 7, 2, "code 37 of feature 5", size=9)
    arrow(ax, (6, 6), (6, 4.2))
    cells(ax, 3, 2.4, rng.random((1, 3)), size=2, show=None, cmap="Blues")
    words(ax, 6, 1.2, "L[37]: 3 numbers", size=9, colour=GREY)
    words(ax, 25, 9.8, "weights of feature 5: one lane for each of 16 classes", bold=True)
    for k in range(3):
        cells(ax, 13, 6.8 - 1.6 * k, rng.random((1, 16)), size=1.5, cmap="Oranges")
        arrow(ax, (9.3, 3.4), (12.8, 7.5 - 1.6 * k))
    words(ax, 25, 1.6, "one instruction works on 16 classes (AVX-512), or on 8 (AVX2)", size=10)
    return figure


def levels():
    """Clusters are solved alone; their support vectors start the next, larger level."""
    X, y = make_moons(900, noise=0.2, random_state=1)
    model = KernelSVC(C=5, gamma=4, levels=2, record_levels=True, random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for ax, level in zip(axes, model.levels_, strict=True):
        support = level.alpha > 0
        whole = level.n_clusters == 1
        colours = np.where(y, BLUE, RED) if whole else np.array(PALETTE * 2)[level.label % 16]
        ax.scatter(*X[~support].T, s=12, c=colours[~support], alpha=0.25, linewidths=0)
        ax.scatter(*X[support].T, s=26, c=colours[support], edgecolors=INK, linewidths=0.7)
        title = "the whole" if whole else f"{level.n_clusters} clusters, each solved alone"
        ax.set_title(f"{title}:\n{support.sum()} support vectors", fontsize=13)
        ax.axis("off")
    return figure


def certificate():
    """The optimum lies between two curves; their distance is what the model reports."""
    figure, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    time = np.linspace(0, 10, 200)
    above, below = 1 + 1.3 * np.exp(-0.55 * time), 1 - 0.95 * np.exp(-0.5 * time)
    ax.fill_between(time, below, above, color=PALE)
    ax.plot(time, above, color=RED, lw=2.4)
    ax.plot(time, below, color=BLUE, lw=2.4)
    ax.axhline(1, color=INK, lw=1, ls=":")
    ax.text(1.0, 1.95, "what the machine costs now (primal)", color=RED, fontsize=12)
    ax.text(1.6, 0.33, "what no machine can go below (dual)", color=BLUE, fontsize=12)
    ax.text(10, 0.84, "the optimum, which is not known", ha="right", fontsize=10, color=INK)
    ax.annotate("", (4, below[80]), (4, above[80]), arrowprops={"arrowstyle": "<->", "lw": 1.6})
    ax.annotate(
        "the duality gap:\nknown at any time",
        (4, 1.08),
        (5.2, 1.45),
        fontsize=12,
        arrowprops={"arrowstyle": "-", "color": GREY},
    )
    ax.set(xlabel="time of a fit", ylabel="objective", xticks=[], yticks=[], ylim=(0, 2.4))
    return figure


# ------------------------------------------------------------------ guides


def auto():
    """The stages of a search: fewer and fewer candidates on more and more rows."""
    figure, ax = scheme(46, 13)
    for k, (name, tried, rows) in enumerate(
        [
            ("a first look", "4 kernels", "1,000 rows"),
            ("settings", "columns, gamma, C:\na model proposes", "5,000 rows"),
            ("rounds", "the best 12,\nthen 6, then 3", "20,000 rows"),
            ("the choice", "one machine,\ncalibrated", "all rows"),
        ]
    ):
        x = 0.6 + 11.8 * k
        box(ax, x, 4.2, 9.4, 4.4, tried, bold=k == 3)
        words(ax, x + 4.7, 10.2, name, bold=True, size=13)
        ax.add_patch(Rectangle((x, 2.4), 9.4 * (0.18, 0.35, 0.6, 1)[k], 0.8, fc="#e08214"))
        words(ax, x + 4.7, 1.2, rows if k == 3 else f"up to {rows}", size=10, colour=GREY)
        if k < 3:
            arrow(ax, (x + 9.6, 6.4), (x + 11.6, 6.4))
    return figure


def one_class():
    """Rows of two groups, and the border of three machines that leave more and more outside."""
    rng = np.random.default_rng(2)
    X = np.vstack(
        [rng.normal(m, 0.5, (150, 2)) for m in (-1.2, 1.2)] + [rng.uniform(-4, 4, (20, 2))]
    )
    a, b = np.meshgrid(np.linspace(-4.2, 4.2, 160), np.linspace(-4.2, 4.2, 160))
    figure, axes = plt.subplots(1, 3, figsize=(9.2, 3.3), layout="constrained")
    for ax, nu in zip(axes, [0.02, 0.1, 0.3], strict=True):
        model = OneClassSVM(nu=nu, gamma=0.5).fit(X)
        scores = model.decision_function(np.c_[a.ravel(), b.ravel()]).reshape(a.shape)
        out = model.predict(X) < 0
        ax.contourf(a, b, scores, [0, np.inf], colors=[PALE])
        ax.contour(a, b, scores, [0], colors=[BLUE])
        ax.scatter(*X[~out].T, s=9, color=BLUE, alpha=0.6, linewidths=0)
        ax.scatter(*X[out].T, s=22, color=RED, marker="x", linewidths=1.3)
        ax.set_title(f"nu = {nu}: {out.mean():.0%} outside", fontsize=12)
        ax.set(xticks=[], yticks=[])
    return figure


def additive():
    """What one machine learned from digits: how a pixel speaks for each of two classes."""
    X, y = load_digits(return_X_y=True)
    model = AdditiveSVC("chi2", C=3, random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    axes[0].imshow(X[13].reshape(8, 8), cmap="Greys")
    axes[0].add_patch(Rectangle((1.5, 4.5), 1, 1, fill=False, ec=RED, lw=3))
    axes[0].set(title="a three, and pixel 42", xticks=[], yticks=[])
    for ax, digit in zip(axes[1:3], [3, 6], strict=True):
        grid, g = model.shape_function(42, digit)
        ax.axhline(0, color=GREY, lw=0.8)
        ax.fill_between(grid, 0, g, where=g > 0, color=BLUE, alpha=0.3)
        ax.fill_between(grid, 0, g, where=g < 0, color=RED, alpha=0.3)
        ax.plot(grid, g, color=INK, lw=2)
        ax.set(title=f"its ink speaks for a {digit}", xlabel="ink of the pixel")
    scores = model.contributions(X[13:14])[0, :-1]
    column = list(model.classes_).index(3)
    spoken = scores[:, column].reshape(8, 8) if scores.ndim > 1 else scores.reshape(8, 8)
    most = np.abs(spoken).max()
    axes[3].imshow(spoken, cmap="RdBu", vmin=-most, vmax=most)
    axes[3].set(title="what every pixel says", xticks=[], yticks=[])
    return figure


def three_machines():
    runpy.run_path(str(ROOT / "examples" / "plot_machines_in_two_dimensions.py"))
    figure = plt.gcf()
    for ax in figure.axes[6:]:
        ax.remove()
    figure.set_size_inches(9, 8)
    return figure


def regression():
    runpy.run_path(str(ROOT / "examples" / "plot_regression_and_outliers.py"))
    figure = plt.gcf()
    figure.set_size_inches(11, 4.6)
    return figure


def vision():
    runpy.run_path(str(ROOT / "examples" / "plot_photographs_by_their_words.py"))
    figure = plt.gcf()
    figure.set_size_inches(8.5, 3.2)
    return figure


def pipeline():
    """Data in, machines, models out."""
    figure, ax = scheme(46, 17)
    for k, name in enumerate(
        [
            "arrays, sparse matrices",
            "pandas, polars, pyarrow",
            "CSV, Parquet, Arrow",
            "svmlight text",
            "a store on disk",
        ]
    ):
        box(ax, 0.5, 13.4 - 3.1 * k, 11.5, 2.4, name, fill="white", edge=GREY, size=10)
        arrow(ax, (12.2, 14.6 - 3.1 * k), (16.6, 8.6))
    box(ax, 17, 9.2, 11.5, 3.6, "AdditiveSVC", bold=True, size=13)
    box(ax, 17, 4.2, 11.5, 3.6, "KernelSVC", bold=True, size=13)
    for k, name in enumerate(
        [
            "predictions",
            "curves and reports",
            "one safe model file",
            "ONNX, LIBSVM, JSON",
            "a certificate",
        ]
    ):
        box(ax, 33.5, 13.4 - 3.1 * k, 11.5, 2.4, name, fill="white", edge=GREY, size=10)
        arrow(ax, (28.8, 8.6), (33.3, 14.6 - 3.1 * k))
    return figure


def coming_from():
    figure, ax = scheme(44, 13)
    theirs = ["SVC, LinearSVC", "svm-train, svm-predict", "EBM", "LightGBM, XGBoost"]
    ours = [
        "widemargin.sklearn",
        "widemargin train, predict",
        "AdditiveSVC, explain",
        "widemargin easy",
    ]
    for k, (left, right) in enumerate(zip(theirs, ours, strict=True)):
        y = 10 - 3.1 * k
        box(ax, 0.5, y, 15, 2.4, left, fill="white", edge=GREY)
        arrow(ax, (16, y + 1.2), (27.5, y + 1.2))
        box(ax, 28, y, 15, 2.4, right)
    for k, text in enumerate(
        ["change one import", "the same options and files", "curves of columns", "one command"]
    ):
        words(ax, 21.7, 11.9 - 3.1 * k, text, size=9, colour=GREY)
    return figure


def files():
    figure, ax = scheme(44, 11)
    box(ax, 0.5, 4, 9.5, 3.6, "a fitted model\nor pipeline", bold=True)
    arrow(ax, (10.2, 5.8), (14.8, 5.8), "save")
    box(ax, 15, 1.4, 13.5, 8.8, "", fill="white")
    words(ax, 21.7, 9.2, "model.safetensors", bold=True)
    for k, text in enumerate(
        [
            "header: JSON, no code",
            "arrays: sizes checked",
            "names, classes, units",
            "digest of every byte",
        ]
    ):
        box(ax, 16, 6.6 - 1.6 * k, 11.5, 1.3, text, size=9)
    arrow(ax, (28.8, 5.8), (33.2, 5.8), "load")
    box(ax, 33.5, 4, 9.8, 3.6, "the same bits,\nor an error", bold=True)
    return figure


def large_data():
    figure, ax = scheme(46, 12)
    box(ax, 0.5, 3.5, 8, 5, "rows.csv\n\n40 GB", fill="white", edge=GREY)
    arrow(ax, (8.8, 6), (13.2, 6), "in chunks")
    for k in range(6):
        box(ax, 13.6 + 2.6 * k, 3.5, 2.2, 5, f"{k + 1}", size=10)
    words(
        ax,
        21.2,
        10.2,
        "a store: blocks of codes, 1 or 2 bytes a value, each with a checksum",
        size=10,
    )
    words(ax, 21.2, 2.3, "folder on disk", size=9, colour=GREY)
    arrow(ax, (29.4, 6), (33.8, 6), "block by block")
    box(ax, 34.2, 3.5, 11, 5, "AdditiveSVC\nKernelSVC\nin bounded memory", bold=True, size=10)
    return figure


def cluster():
    figure, ax = scheme(46, 15)
    box(ax, 0.5, 5.3, 9, 4.4, "your program\nfit(store)", bold=True)
    for k, text in enumerate(
        [
            "worker 1: clusters 1, 5, 9",
            "worker 2: clusters 2, 6, 10",
            "worker 3 is lost",
            "worker 4: clusters 4, 8, and 3, 7",
        ]
    ):
        lost = "lost" in text
        box(
            ax,
            19,
            11.6 - 3.6 * k,
            13,
            2.6,
            text,
            size=10,
            fill="white" if lost else PALE,
            edge=RED if lost else BLUE,
        )
        arrow(ax, (9.8, 7.5), (18.7, 12.9 - 3.6 * k), colour=RED if lost else GREY)
        if not lost:
            arrow(ax, (32.3, 12.9 - 3.6 * k), (36.2, 7.5))
    box(ax, 36.5, 5.3, 9, 4.4, "one model,\nthe same bits", bold=True)
    return figure


def command_line():
    """What `widemargin train` and `evaluate` print, as a terminal shows it."""
    with tempfile.TemporaryDirectory() as folder:
        data = load_breast_cancer(as_frame=True)
        frame = data.data.round(3).assign(diagnosis=data.target_names[data.target])
        frame[::2].to_csv(f"{folder}/train.csv", index=False)
        frame[1::2].to_csv(f"{folder}/test.csv", index=False)
        shown = []
        for command in [
            "widemargin train train.csv --label diagnosis -t auto",
            "widemargin evaluate test.csv train.csv.safetensors",
        ]:
            program = [str(Path(sys.executable).with_name("widemargin")), *command.split()[1:]]
            done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
            shown += [f"$ {command}", *(done.stderr + done.stdout).strip().splitlines(), ""]
    lines = [line[:96] for line in shown]
    figure, ax = plt.subplots(figsize=(7.6, 0.22 * len(lines) + 0.3))
    figure.patch.set_facecolor("#16181d")
    ax.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    for k, line in enumerate(lines):
        colour = "#7cb8f0" if line.startswith("$") else "#e6e8eb"
        ax.text(
            0.02,
            1 - (k + 1) / (len(lines) + 1),
            line,
            family="monospace",
            fontsize=9,
            color=colour,
            va="center",
            transform=ax.transAxes,
        )
    return figure


def measured():
    """How many times as long as ours a fit of others takes, from README's table."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`, ([^|]+)\| ([^|]+)\| ([\d.]+) times faster", readme, re.M)
    plain = [
        (machine, re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", what).strip(), peer.strip(), float(times))
        for machine, what, peer, times in rows
    ]
    plain.sort(key=lambda row: row[3])
    figure, ax = plt.subplots(figsize=(7.8, 4), layout="constrained")
    names = [f"{machine}, {what}\nagainst {peer}" for machine, what, peer, _ in plain]
    colours = [BLUE if machine == "AdditiveSVC" else "#2e8b57" for machine, *_ in plain]
    bars = ax.barh(names, [row[3] for row in plain], color=colours)
    ax.bar_label(bars, [f"{row[3]:g} times" for row in plain], padding=4)
    ax.axvline(1, color=INK, lw=1)
    ax.set(xlabel="times as long as ours", xlim=(0, max(row[3] for row in plain) * 1.12))
    ax.tick_params(axis="y", labelsize=9)
    return figure


def four_papers():
    figure, ax = scheme(46, 12)
    ax.plot([1, 45], [5.5, 5.5], color=GREY, lw=2)
    for x, year, name, idea in [
        (6, "2010", "ICD", "one table per feature,\ntrained in the dual"),
        (17.5, "2012", "PmSVM", "every power mean,\nthree nodes"),
        (28.5, "2012", "PmSVM-LUT", "look-ups instead\nof logarithms"),
        (40, "2014", "DC-SVM", "clusters first,\nthe whole afterwards"),
    ]:
        ax.plot([x], [5.5], "o", ms=13, color=BLUE)
        words(ax, x, 3.9, year, colour=GREY)
        words(ax, x, 10.3, name, bold=True, size=13)
        words(ax, x, 7.9, idea, size=10)
    words(ax, 17, 1.6, "AdditiveSVC", bold=True, colour=BLUE, size=12)
    words(ax, 40, 1.6, "KernelSVC", bold=True, colour="#2e8b57", size=12)
    ax.plot([2, 33], [2.7, 2.7], color=BLUE, lw=2)
    ax.plot([36, 44.5], [2.7, 2.7], color="#2e8b57", lw=2)
    return figure


DRAWN = {
    "lookups": lookups,
    "lanes": lanes,
    "levels": levels,
    "certificate": certificate,
    "additive": additive,
    "three-machines": three_machines,
    "pipeline": pipeline,
    "coming-from": coming_from,
    "files": files,
    "large-data": large_data,
    "cluster": cluster,
    "command-line": command_line,
    "measured": measured,
    "four-papers": four_papers,
    "vision": vision,
    "regression": regression,
    "auto": auto,
    "one-class": one_class,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWN:
        figure = DRAWN[name]()
        figure.savefig(
            PICTURES / f"{name}.png", dpi=130, bbox_inches="tight", facecolor=figure.get_facecolor()
        )
        plt.close("all")
        print(PICTURES / f"{name}.png")
