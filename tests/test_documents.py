"""Links and pictures of the documents exist, and their Python runs."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.vision.helpers import encoded, striped

from widemargin import AdditiveSVC
from widemargin.data import write_svmlight

ROOT = Path(__file__).parents[1]
NAMES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
DOCUMENTS = [path for path in [*map(ROOT.joinpath, NAMES), *sorted(ROOT.glob("docs/*.md"))]
             if path.exists()]  # fmt: skip
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def committed() -> set[str] | None:
    """Files that git knows, or None where this is no checkout."""
    command = ["git", "ls-files", "-z", "--cached"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    names = set(listed.stdout.split("\0"))
    return names if "README.md" in names else None


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The files that the documents' examples speak of, in the current folder."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    write_svmlight("a9a.bz2", X[:200], y[:200])
    write_svmlight("train.svm", X[:200], y[:200])
    np.save("X.npy", X)
    np.save("y.npy", y)
    rows = zip([39, 50, 38], [13, 13, 9], ["low", "high", "low"], strict=True)
    Path("people.csv").write_text(
        "age,years,income\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    )
    photographs(Path("scenes"))
    return {"X": X, "y": y, "model": AdditiveSVC("chi2", random_state=0).fit(X, y)}


def photographs(folder: Path) -> None:
    """A folder of two class folders."""
    for label, across in (("coast", True), ("forest", False)):
        (folder / label).mkdir(parents=True)
        for k in range(12):
            content = encoded(striped(across, seed=k), "JPEG")
            (folder / label / f"{k}.jpg").write_bytes(content)


def test_there_are_documents():
    assert len(DOCUMENTS) >= 6


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document, committed):
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):  # another site's
            continue
        if committed is None and "benchmarks/results/" in link:  # not in the sdist
            continue
        target = (document.parent / link.partition("#")[0]).resolve()
        assert target.exists(), f"{document.name} links to {link}, which is not there"
        if committed is not None and target.is_file():
            assert name(target) in committed, f"{link} is in no commit"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_prose_is_no_wider_than_usual(document):
    """Tables, pictures, programs and what a program wrote are as wide as they are."""
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    text = re.sub(r"<!-- drawn .*?<!-- end", "", text, flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    ", "!["))]
    assert [line for line in prose if len(line) > 110] == []
    assert [line for line in prose if line.startswith("%")] == []  # a comment, to the site


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_python_blocks_run_in_order(document, here):
    """One block after the other, with the data X, y and a fitted model to begin with."""
    text = document.read_text(encoding="utf-8")
    for match in FENCED.finditer(text):
        if match[1] == "python":
            line = text.count("\n", 0, match.start(2))
            code = compile("\n" * line + match[2], str(document), "exec")
            exec(code, here)
