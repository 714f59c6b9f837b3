"""The options of the commands on images: how to read them, and which features to count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from widemargin.cli.options import data_option, max_bytes_option, option
from widemargin.cli.words import UsageError, numbers

feature_option = partial(option, panel="Features")

ImageData = Annotated[
    Path,
    typer.Argument(
        help="A folder of class folders, a .tar or .zip of one, a .csv or .tsv with the columns "
        "path and label, or one image"
    ),
]
FEATURES = ("words", "icd-words", "pmsvm-words", "centrist")


@dataclass(frozen=True)
class ImageSource:
    """How to read images, and with how many threads."""

    inside: str | None = data_option("--inside", "Read this folder of DATA instead of all of it")
    on_error: str = data_option(
        "--on-error", "raise (default) or skip: images that cannot be read", default="raise"
    )
    max_pixels: int | None = data_option(
        "--max-pixels", "Refuse images of more pixels (default: 33554432)", min=1
    )
    max_bytes: int | None = max_bytes_option()
    jobs: int = option("-j", "--jobs", "Threads; -1 is all", default=-1)

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise UsageError(f"--on-error {self.on_error}: not one of raise, skip.")
        if self.jobs == 0:
            raise UsageError("--jobs 0: write a positive number, or -1 for all.")

    def read(self, path: Path):
        """Return the images of a path."""
        from widemargin.vision import read_images

        limit = {} if self.max_pixels is None else {"max_pixels": self.max_pixels}
        return read_images(
            path,
            inside=self.inside,
            on_error=self.on_error,
            max_bytes=self.max_bytes,
            n_jobs=self.jobs,
            **limit,
        )


@dataclass(frozen=True)
class Features:
    """What to count in images; None is the default of the features."""

    features: str = feature_option(
        "--features",
        "words (default: 200 of k-means on patches of 16 pixels, every 8), icd-words, "
        "pmsvm-words (the papers' settings), or centrist (no codebook)",
        default="words",
    )
    words: int | None = feature_option("--words", "Words of the codebook", min=1)
    codebook: str | None = feature_option("--codebook", "kmeans (default) or intersection")
    neighbours: int | None = feature_option(
        "--neighbours", "Words that share a patch (default: 1)", min=1
    )
    step: int | None = feature_option("--step", "Pixels between patches (default: 8)", min=1)
    sides: str | None = feature_option(
        "--sides", "Sides of patches, separated by commas (default: 16)"
    )
    root: bool | None = feature_option(
        "--root/--plain", "Square roots of descriptors, or plain ones"
    )
    edges: bool | None = feature_option("--edges/--no-edges", "Words of the image of edges too")
    levels: str | None = feature_option("--levels", "Levels of the pyramid (default: 1,2,4)")
    overlap: bool | None = feature_option(
        "--overlap/--no-overlap", "Windows between blocks too (default)"
    )
    shares: bool | None = feature_option("--shares/--counts", "Shares of windows instead of counts")
    longest_side: int | None = feature_option(
        "--longest-side", "Reduce larger images (default: 300; centrist: as they are)", min=1
    )
    sample_size: int | None = feature_option(
        "--sample-size", "Patches for the codebook (default: 100000)", min=1
    )

    def make(self, seed: int | None, jobs: int) -> Any:
        """Return unfitted features."""
        from widemargin.vision import Centrist, SpatialPyramid

        if self.features not in FEATURES:
            raise UsageError(f"--features {self.features}: not one of {', '.join(FEATURES)}.")
        if self.features != "centrist":
            return self._make_words(seed, jobs)
        applicable = ("features", "levels", "overlap", "shares", "longest_side")
        for name, value in vars(self).items():
            if value is not None and name not in applicable:
                raise UsageError(
                    f"--{name.replace('_', '-')} cannot be combined with --features centrist."
                )
        pyramid = SpatialPyramid().set_params(**self._pyramid())
        return Centrist(pyramid, longest_side=self.longest_side, n_jobs=jobs)

    def _make_words(self, seed: int | None, jobs: int) -> Any:
        from widemargin.vision import (
            BagOfVisualWords,
            Codebook,
            DenseSIFT,
            SpatialPyramid,
            icd_words,
            pmsvm_words,
        )

        presets = {"icd-words": icd_words, "pmsvm-words": pmsvm_words}
        plain = partial(BagOfVisualWords, DenseSIFT(), Codebook(), SpatialPyramid())
        given = {
            "codebook__n_words": self.words,
            "codebook__method": self.codebook,
            "codebook__neighbours": self.neighbours,
            "features__step": self.step,
            "features__sides": self._whole("sides"),
            "features__root": self.root,
            "features__longest_side": self.longest_side,
            "edges": self.edges,
            "sample_size": self.sample_size,
            **{f"pyramid__{name}": value for name, value in self._pyramid().items()},
        }
        changes = {name: value for name, value in given.items() if value is not None}
        bag = presets.get(self.features, plain)()
        return bag.set_params(codebook__random_state=seed, n_jobs=jobs, **changes)

    def _pyramid(self) -> dict[str, Any]:
        given = {
            "levels": self._whole("levels"),
            "overlap": self.overlap,
            "shares": self.shares,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _whole(self, name: str) -> tuple[int, ...] | None:
        """Parse a list of whole numbers."""
        words = getattr(self, name)
        if words is None:
            return None
        values = numbers(words, f"--{name}")
        if any(value != int(value) for value in values):
            raise UsageError(f"--{name} {words}: write whole numbers.")
        return tuple(int(value) for value in values)
