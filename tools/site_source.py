"""The source of the site, made of the pages of this tree: build/docs, for Sphinx to read.

Usage: python tools/site_source.py FOLDER

Pages stay plain Markdown, which code hosts show too: here links between files become links between
pages, and each section of the site gets its list of pages.  Public names and guides are found, so
that a new one needs no entry here.
"""

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FROM_ROOT = {
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
# A page and those below it. Other pages of docs/ are guides.
SECTIONS = {
    "index": [
        "start", "guides", "gallery/index", "api", "coming-from", "measured", "four-papers",
        "how-it-works", "contributing",
    ],
    "guides": ["additive", "kernel", "command-line", "files", "large-data", "cluster", "features"],
    "coming-from": ["coming-from-scikit-learn"],
    "four-papers": ["papers", "open-questions"],
    "measured": [f"results/{path.stem}" for path in sorted(RESULTS.glob("*.md"))],
    "contributing": ["architecture", "stress", "changelog", "releasing", "security", "conduct"],
}  # fmt: skip
PACKAGES = [
    "widemargin", "widemargin.sklearn", "widemargin.papers", "widemargin.additive",
    "widemargin.data", "widemargin.plots", "widemargin.export", "widemargin.libsvm",
    "widemargin.dask", "widemargin.errors",
]  # fmt: skip
IMPORTED = re.compile(r"^from (widemargin[\w.]*) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?\)")


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    homes = pages(folder)
    for source, target in homes.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        if source.suffix == ".md":
            target.write_text(site_page(source, homes, folder), encoding="utf-8")
    for section, below in sections(folder).items():
        with (folder / f"{section}.md").open("a", encoding="utf-8") as stream:
            print("\n```{toctree}\n:hidden:\n", *below, "```", sep="\n", file=stream)
    (folder / "api.rst").write_text(api(), encoding="utf-8")


def pages(folder: Path) -> dict[Path, Path]:
    """Files of the tree that the site takes, and where it has them."""
    found = {ROOT / source: folder / target for source, target in FROM_ROOT.items()}
    for pattern in ("docs/*.md", "docs/*.png", "docs/pictures/*"):
        found |= {path: folder / path.relative_to(ROOT / "docs") for path in ROOT.glob(pattern)}
    found |= {path: folder / "results" / path.name for path in RESULTS.glob("*.md")}
    return {source: target for source, target in found.items() if source.exists()}


def sections(folder: Path) -> dict[str, list[str]]:
    listed = {name for below in SECTIONS.values() for name in below} | {"index"}
    new = sorted(path.stem for path in folder.glob("*.md") if path.stem not in listed)
    found = SECTIONS | {"guides": SECTIONS["guides"] + new}
    made = {"gallery/index", "api"}  # later
    return {
        section: [name for name in below if name in made or (folder / f"{name}.md").exists()]
        for section, below in found.items()
    }


def site_page(source: Path, homes: dict[Path, Path], folder: Path) -> str:
    """The text of a page with its links between files as links between pages."""

    def moved(match: re.Match) -> str:
        target = homes.get((source.parent / match[2]).resolve())
        if target is None:
            return match[0]
        return f"{match[1]}/{target.relative_to(folder).as_posix()}{match[3] or ''})"

    parts = re.split(r"(^```.*?^```$)", source.read_text(encoding="utf-8"), flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts)


def api() -> str:
    """The list of public names, by module: what packages offer, and what documents import."""
    lines = [
        "API", "===", "",
        "Every public name, by the module from which it is imported. ``import widemargin`` loads",
        "none of them until they are used. ``widemargin.__version__`` is the version.", "",
    ]  # fmt: skip
    seen: set[int] = set()
    for module, wanted in modules().items():
        found = public(module, wanted, seen)
        if found:
            title = inspect.getdoc(importlib.import_module(module)).splitlines()[0]
            lines += [module, "-" * len(module), "", title.replace("`", "``"), ""]
            lines += [
                f".. currentmodule:: {module}",
                "",
                ".. autosummary::",
                "   :toctree: api",
                "   :nosignatures:",
                "",
            ]
            lines += [f"   {name}" for name in found] + [""]
    return "\n".join(lines)


def modules() -> dict[str, set[str]]:
    """Public modules, and names of them that documents and examples import."""
    found: dict[str, set[str]] = {name: set() for name in PACKAGES}
    for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("examples/*.py")]:
        for module, several, one in IMPORTED.findall(path.read_text(encoding="utf-8")):
            names = {name.split()[0] for name in (several or one).split(",") if name.strip()}
            found.setdefault(module, set()).update(names)
    return found


def public(module: str, wanted: set[str], seen: set[int]) -> list[str]:
    """Classes and functions of a module for the list that no module before it has."""
    loaded = importlib.import_module(module)
    names = set(getattr(loaded, "__all__", [])) | wanted
    if not names:
        own = inspect.getmembers(loaded, lambda value: getattr(value, "__module__", "") == module)
        names = {
            name for name, value in own if not name.startswith("_") and is_offered(module, value)
        }
    found = {name: getattr(loaded, name, None) for name in sorted(names)}
    found = {name: value for name, value in found.items() if id(value) not in seen}
    found = {n: v for n, v in found.items() if inspect.isclass(v) or inspect.isfunction(v)}
    seen.update(map(id, found.values()))
    return list(found)


def is_offered(module: str, value: object) -> bool:
    """Whether a name without ``__all__`` around it is for users: errors, machines, presets."""
    if module.endswith("errors"):
        return inspect.isclass(value) and issubclass(value, BaseException)
    if module.endswith("dask"):
        return inspect.isclass(value) and hasattr(value, "fit")
    return inspect.isfunction(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
