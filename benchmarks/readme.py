"""``python -m benchmarks.readme``: write the tables of README, docs/measured.md and the paper.

Figures in sentences are edited by hand.  Tests compare both tables and sentences with the results,
so a new measurement changes the results first and the documents after them.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

from benchmarks.experiments.lines import Line, lines_of
from benchmarks.experiments.ranks import NEAR, NO_KERNEL, standings
from benchmarks.experiments.store import Results, opened
from benchmarks.report import RESULTS, rows_of, table

ROOT = Path(__file__).parents[1]
README, MEASURED = ROOT / "README.md", ROOT / "docs/measured.md"
PAPER = ROOT / "docs/paper/paper.md"
MARK = "<!-- {name}: python -m benchmarks.readme -->"
END = "<!-- end -->"
OURS = ("AdditiveSVC", "KernelSVC")  # with their defaults
EASY = "easy"
SHOWN = {name: f"**{name}()**" for name in OURS} | {EASY: "**widemargin easy**, which chooses"}


class Result:
    """Rows of all tables in a file of results; an empty first cell repeats the one above."""

    def __init__(self, name: str):
        self.link = f"benchmarks/results/{name}.md"
        self.text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
        self.rows: list[list[str]] = []
        for cells in rows_of(self.text):
            if not cells[0] and self.rows and len(self.rows[-1]) == len(cells):
                cells[0] = self.rows[-1][0]
            self.rows.append(cells)

    def row(self, *beginnings: str) -> list[str]:
        """Return the first row whose first cells begin with these strings."""
        for row in self.rows:
            if all(c.startswith(b) for c, b in zip(row, beginnings, strict=False)):
                return row
        raise ValueError(f"{self.link} has no row {' | '.join(beginnings)}.")

    def number(self, *beginnings: str, column: int) -> float:
        return _number(self.row(*beginnings)[column])


def _number(text: str) -> float:
    found = re.search(r"[-+]?\d[\d,]*\.?\d*", text)
    if found is None:
        raise ValueError(f"No number in {text!r}.")
    return float(found[0].replace(",", ""))


def _times(ratio: float) -> str:
    """Two digits, as far as runs agree.

    >>> _times(3.92), _times(16.7)
    ('3.9 times', '17 times')
    """
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:.0f} times"


def _points(ours: float, theirs: float) -> str:
    """
    >>> _points(87.92, 87.94), _points(98.7, 98.7)
    ('-0.02 points', 'the same')
    """
    away = round(ours - theirs, 2)
    return f"{away:+.2f} points" if away else "the same"


def headline_table() -> list[str]:
    """README's table: at most six rows of the tables in docs/measured.md."""
    fashion, text, predict = Result("fashion_fit"), Result("text_fit"), Result("fashion_predict")
    news = text.row("news20, counts")
    sampler = "AdditiveChi2Sampler + LinearSVC"
    biased = _kernel_row("kernel_fit_ijcnn1", "[ijcnn1]({})", "KernelSVC, fit_intercept=True")
    letter = _class_row("many_classes_small", "letter:", "[letter]({})")
    covtype = _kernel_row("kernel_fit_covtype", "[covtype]({})")
    rows = [
        [f"`AdditiveSVC`, fit, [Fashion-MNIST]({fashion.link}), 60,000 images", "LinearSVC",
         f"{_times(fashion.number('fit against LinearSVC', column=1))} faster",
         f"{fashion.number('accuracy against LinearSVC', column=1):+.1f} points"],
        [f"`AdditiveSVC`, fit, [news20 counts]({text.link}), 20 classes", "LinearSVC",
         f"{_times(_number(news[7]))} faster", f"{_number(news[8]):+.1f} points"],
        [f"`AdditiveSVC`, [prediction]({predict.link}) of 10,000 images", sampler,
         f"{_times(_prediction_ratio(predict))} faster", ""],
        [f"`KernelSVC`, fit, {letter[0]}, 26 classes, defaults", "SVC",
         f"{letter[1]} faster", letter[3]],
        [f"`KernelSVC`, fit, {biased[0]}, C = 32, gamma = 2", "SVC",
         f"{biased[1]} faster", biased[3]],
        [f"`KernelSVC`, fit, {covtype[0]}, 30,000 rows", "scikit-learn-intelex",
         f"{covtype[2]} faster", covtype[3]],
    ]  # fmt: skip
    return table(["", "against", "time", "accuracy"], rows)


def _prediction_ratio(predict: Result) -> float:
    return _number(predict.text[: predict.text.index(" times faster")].rsplit("\n", 1)[1])


def additive_table() -> list[str]:
    fashion, text, epoch = Result("fashion_fit"), Result("text_fit"), Result("binary_epoch")
    predict, memory, icd = Result("fashion_predict"), Result("memory"), Result("icd_accuracy")
    linear, mapped = "fit against LinearSVC", "fit against AdditiveChi2Sampler"
    news, sector = text.row("news20, counts"), text.row("sector")
    ratios = [epoch.row(name)[5] for name in ("a9a", "w8a")]
    room = [memory.number(name, column=1) for name in ("AdditiveSVC", "LinearSVC")]
    presets = [icd.row(f"icd, {name}") for name in ("ijcnn1", "shuttle")]
    equal = f"equal ({fashion.row('accuracy against it')[1].removesuffix(' points')})"
    gain = fashion.number("accuracy against LinearSVC", column=1)
    rows = [
        [f"[Fashion-MNIST]({fashion.link}), 60,000 images, chi2", "LinearSVC",
         f"{_times(fashion.number(linear, column=1))} faster", f"{gain:+.1f} points"],
        ["the same", "AdditiveChi2Sampler + LinearSVC",
         f"{_times(fashion.number(mapped, column=1))} faster", equal],
        [f"[prediction]({predict.link}) of 10,000 images", "the same",
         f"{_times(_prediction_ratio(predict))} faster", ""],
        [f"[news20 counts]({text.link}), 20 classes, 56,436 features", "LinearSVC",
         f"{_times(_number(news[7]))} faster", f"{_number(news[8]):+.1f} points"],
        [f"[sector]({text.link}), 105 classes", "LinearSVC",
         f"{_times(_number(sector[7]))} faster", f"{_number(sector[8]):+.1f} points"],
        [f"[a9a, w8a]({epoch.link}), one sweep, per stored value", "LIBLINEAR",
         f"{', '.join(ratios)} of its time", ""],
        [f"[memory]({memory.link}) during a fit of 60,000 x 784 bytes", "LinearSVC",
         f"{room[0]:.0f} MiB against {room[1]:.0f}", ""],
        [f"[ICD's preset]({icd.link}), ijcnn1 and shuttle",
         f"the paper's {', '.join(row[2] for row in presets)} %", "",
         f"{', '.join(row[1] for row in presets)} %"],
    ]  # fmt: skip
    return table(["", "against", "time", "accuracy"], rows)


def kernel_table() -> list[str]:
    """Compare accuracies with SVC's, or with intelex's where SVC was not run."""
    small, large, hundreds = (f"many_classes_{part}" for part in ("small", "large", "hundreds"))
    biased = "KernelSVC, fit_intercept=True"
    grid = Result("kernel_grid")
    found = re.search(r"SVC [\d.]+ s: ([\d.]+) and", grid.text)
    assert found is not None
    rows = [
        _kernel_row("kernel_fit_covtype", "[covtype, 30,000 rows]({}), fit"),
        _kernel_row("kernel_fit_ijcnn1", "[ijcnn1]({}), 49,990 rows, fit with intercept", biased),
        _kernel_row("kernel_fit_mnist", "[MNIST, round digits]({}), 60,000 rows, fit"),
        _class_row("many_classes_two", "a9a:", "[a9a]({}), 32,561 rows, defaults"),
        _class_row("many_classes_two", "moons:", "[two moons]({}), 50,000 rows, defaults"),
        _class_row(small, "letter:", "[letter]({}), 26 classes, 15,000 rows, defaults"),
        _class_row(hundreds, "sector:", "[sector]({}), 105 classes, 6,412 texts, defaults"),
        _class_row(large, "mnist:", "[MNIST]({}), 10 classes, 60,000 rows, C = 8, gamma = .04"),
        _class_row(large, "covtype:", "[covtype]({}), 7 classes, 30,000 rows, C = gamma = 32"),
        _class_row(small, "usps:", "[usps]({}), 10 classes, 7,291 rows, defaults"),
        _class_row(small, "satimage:", "[satimage]({}), 6 classes, 4,435 rows, defaults"),
        _kernel_row("kernel_predict", "[prediction]({}) of 20,000 covtype rows"),
        [f"[grid of 25 settings]({grid.link}), 10,000 rows",
         f"{_times(float(found[1]))} (ours on one thread)", "", ""],
    ]  # fmt: skip
    header = ["", "SVC needs", "scikit-learn-intelex needs", "accuracy"]
    rows[0][1] += " as long"
    return table(header, rows)


def _kernel_row(name: str, words: str, ours: str = "KernelSVC") -> list[str]:
    """Return a row from a results file with one table: seconds, its time / ours, accuracy."""
    result = Result(name)
    place = result.row("", "seconds").index("accuracy, %")
    known = {row[0]: row for row in result.rows}
    return [words.format(result.link), *_against_peers(known, known[ours], 2, place)]


def _class_row(name: str, data: str, words: str) -> list[str]:
    """Return a row from a results file whose table has two or three lines per data set."""
    result = Result(name)
    known = {row[1]: row for row in result.rows if row[0].startswith(data)}
    return [words.format(result.link), *_against_peers(known, known["KernelSVC"], 3, 4)]


def _against_peers(known: dict, ours: list[str], ratio: int, accuracy: int) -> list[str]:
    """Return how much longer each peer takes, and our accuracy minus SVC's."""
    peers = ("SVC", "scikit-learn-intelex")
    ratios = [_times(_number(known[n][ratio])) if n in known else "not run" for n in peers]
    peer = next(known[n] for n in peers if n in known)
    return [*ratios, _points(_number(ours[accuracy]), _number(peer[accuracy]))]


def _lines(experiment: str) -> list[Line]:
    rows = Results(RESULTS / f"experiments/{experiment}.parquet").rows.values()
    return lines_of(map(opened, rows))


def _today() -> list[Line]:
    return _lines("today")


def _exact_covtype() -> str:
    """Return the time and accuracy on all of covtype at the paper's tolerance."""
    line = next(line for line in _lines("dcsvm_covtype_whole") if line.use == "DC-SVM")
    seconds, gap = line.median("fit_seconds") or 0.0, line.detail("gap") or 1.0
    return f"to {100 * gap:.1f} % in {seconds:.0f} s of one thread ({line.accuracy:.2f} %)"


def _worth_of_tuning(*sets: str) -> str:
    """Return by how many points tuned LIBSVM is ahead of KernelSVC's defaults."""
    known = {(line.method, line.data): line.accuracy or 0.0 for line in _today()}
    ahead = [known["LIBSVM RBF", name] - known["KernelSVC", name] for name in sets]
    return f"{min(ahead):.0f} to {max(ahead):.0f} points"


def _near_the_tuned(*ours: str) -> str:
    """Count the sets where the better of ours is near the best tuned kernel method of others."""
    best: dict[str, list[float]] = {}  # set -> best accuracy of ours and of the others
    for line in _today():
        is_ours = line.method in ours
        if (is_ours or line.method not in {*NO_KERNEL, *SHOWN}) and line.accuracy is not None:
            accuracies = best.setdefault(line.data, [0.0, 0.0])
            accuracies[not is_ours] = max(accuracies[not is_ours], line.accuracy)
    return f"{sum(tuned - ours <= NEAR for ours, tuned in best.values())} sets of the {len(best)}"


def notes() -> list[str]:
    """Return the figures in the note of the experiment `today`, with the words around them."""
    alone = [_near_the_tuned(name) for name in (*OURS, EASY)]
    return [
        f"KernelSVC, whose defaults are SVC's, on {alone[1]}",
        f"AdditiveSVC on {alone[0]}",
        f"one of the two on {_near_the_tuned(*OURS)}",
        f"easy on {alone[2]}",
    ]


def _seconds_of_easy() -> str:
    seconds = [line.median("fit_seconds") or 0.0 for line in _today() if line.method == EASY]
    return f"{min(seconds):.0f} to {max(seconds):.0f} s"


def _against_ebm() -> str:
    """Compare AdditiveSVC's defaults with EBM on the sets where EBM was run."""
    known = {(line.method, line.data): line.accuracy for line in _today()}
    sets = [d for m, d in known if m == "EBM" and known["EBM", d] is not None]
    ahead = [(known["EBM", d] or 0.0) - (known["AdditiveSVC", d] or 0.0) for d in sets]
    return (
        f"on {len(sets)} sets only: tuned, it is ahead of `AdditiveSVC()` on "
        f"{sum(points > 0 for points in ahead)} of them, by {sum(ahead) / len(ahead):.1f} points "
        "on average"
    )


def today_table() -> list[str]:
    """Rank every method of the experiment `today`, without timings of a busy machine."""
    lines, shown = _today(), []
    for s in standings(lines):
        seconds = [t for line in lines if line.method == s.method and not line.is_busy
                   if (t := line.median("fit_seconds")) is not None]  # fmt: skip
        name = SHOWN.get(s.method, s.method)
        shown.append([name, f"{s.rank:.2f}", str(s.first), f"{s.behind:.2f}", str(s.near),
                      f"{median(seconds):.2g}" if seconds else ""])  # fmt: skip
    header = ["", "average rank", "first", "points behind the best",
              f"sets within {NEAR} of the best kernel method", "median fit, s"]  # fmt: skip
    return table(header, shown)


TABLES = {
    README: {"headline": headline_table},
    PAPER: {"headline": headline_table},
    MEASURED: {"additive": additive_table, "kernel": kernel_table, "today": today_table},
}


def phrases() -> list[str]:
    """Return the figures in sentences of docs/measured.md, with the words around them."""
    peak, whole, rows = Result("fma_peak"), Result("kernel_whole"), Result("kernel_rows")
    threads, cost = Result("kernel_threads"), Result("certificate_cost")
    load, start = Result("model_load"), Result("startup")
    shares = [_number(peak.row(str(rank))[4]) for rank in (1, 2, 3, 4, 8, 16)]
    parse, team = Result("parse"), Result("threads")
    early = [[_number(c) for c in r[1:5]] for r in whole.rows if r[0].startswith("early")]
    exact = [[_number(c) for c in r[1:5]] for r in whole.rows if r[0].startswith("exact")]
    speeds = [_number(row[7]) for row in rows.rows[1:]]
    covtype, ijcnn1, mnist = (max(_number(row[3]), 0.0) for row in cost.rows[1:4])
    slowest = min(_number(row[3]) for row in load.rows[1:])
    return [
        f"[{min(shares[1:]):.0f} to {max(shares):.0f} % of the core's multiply-add peak]"
        f"(../{peak.link}) ({shares[0]:.0f} % at rank 1)",
        f"[{covtype:.0f}, {ijcnn1:.0f} and {mnist:.0f} %](../{cost.link})",
        f"an early model in {median(r[0] for r in early):.0f} s "
        f"({median(r[3] for r in early):.2f} %)",
        f"in {min(r[0] for r in exact):.0f} to {max(r[0] for r in exact):.0f} s "
        f"({median(r[3] for r in exact):.2f} %)",
        _exact_covtype(),
        f"[about {_times(median(_number(row[4]) for row in team.rows[1:]))}](../{team.link})",
        f"[{_times(median(_number(row[5]) for row in parse.rows[1:]))} as fast](../{parse.link})",
        f"{min(_number(row[6]) for row in parse.rows[1:]):.0f} to "
        f"{max(_number(row[6]) for row in parse.rows[1:]):.0f} times on two",
        f"[{min(speeds):.0f} to {max(speeds):.0f} %](../{rows.link})",
        f"[{_times(threads.number('16', column=2))}](../{threads.link})",
        f"is worth {_worth_of_tuning('letter', 'covtype_classes', 'ijcnn1')}",
        f"of the best tuned kernel method on {_near_the_tuned(*OURS)}",
        f"of the best kernel method on {_near_the_tuned(EASY)}, in {_seconds_of_easy()}",
        _against_ebm(),
        f"[{slowest / 1000:.1f} GB/s](../{load.link})",
        f"[{start.number('`widemargin --help`', column=1):.2f} s](../{start.link})",
    ]


def paper_phrases() -> list[str]:
    """Return the figures in sentences of docs/paper/paper.md, with the words around them."""
    whole = Result("kernel_whole")
    early = [_number(row[1]) for row in whole.rows if row[0].startswith("early")]
    exact = [_number(row[1]) for row in whole.rows if row[0].startswith("exact")]
    worth = _worth_of_tuning("letter", "covtype_classes", "ijcnn1")
    return [
        f"an early model takes {median(early):.0f} s",
        f"the exact one {min(exact):.0f} to {max(exact):.0f} s",
        f"the choice of C and gamma is worth {worth}",
        f"of the best tuned kernel method on {_near_the_tuned(EASY)}",
        _against_ebm().replace("`AdditiveSVC()`", "`AdditiveSVC`"),
    ]


def rewritten(document: Path) -> str:
    """Return the document's text with its tables made from the results."""
    text = document.read_text(encoding="utf-8")
    for name, make in TABLES[document].items():
        begin = text.index(MARK.format(name=name)) + len(MARK.format(name=name))
        lines = "\n".join(make())
        if document == MEASURED:
            lines = lines.replace("](benchmarks/", "](../benchmarks/")
        if document == PAPER:
            lines = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", lines)
        text = f"{text[:begin]}\n{lines}\n{text[text.index(END, begin) :]}"
    return text


if __name__ == "__main__":
    for document in TABLES:
        document.write_text(rewritten(document), encoding="utf-8")
