"""Pack and unpack features of images, for `widemargin.save` and `widemargin.load`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.persistence.container import Arrays, Fields
from widemargin.vision.centrist import CODES, Centrist
from widemargin.vision.codebook import AT_ONCE, LEVELS, Codebook
from widemargin.vision.counting import WordCounter
from widemargin.vision.pixels import LONGEST
from widemargin.vision.pyramid import SpatialPyramid
from widemargin.vision.sift import LENGTH, DenseSIFT
from widemargin.vision.visual_words import BagOfVisualWords

_LONGEST = 1000  # pixels of an image's side that memory is reckoned for if it is not reduced
_NOT_STORED = "n_jobs"  # threads are a matter of the machine that predicts


def pack_images(features: WordCounter) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of fitted features."""
    check_is_fitted(features, "pyramid_")
    own: dict[str, Any] = {"pyramid": _settings(features.pyramid_)}
    if isinstance(features, Centrist):
        return own | {"longest_side": features.longest_side}, {}
    assert isinstance(features, BagOfVisualWords)
    book = features.codebook_
    own |= {
        "features": _settings(features.features_),
        "codebook": _settings(book) | {"spread": book.spread_},
        "edges": bool(features.edges),
        "sample_size": int(features.sample_size),
    }
    if book.method == "kmeans":
        return own, {"centres": book.centres_, "half_norms": book.half_norms_}
    own["codebook"]["top"] = book.top_
    return own, {"tables": book.tables_, "half_norms": book.half_norms_}


def _settings(estimator) -> dict:
    """Return the parameters of a part as JSON."""
    given = estimator.get_params(deep=False)
    seed = given.get("random_state")
    if seed is not None and not isinstance(seed, (int, np.integer)):
        given["random_state"] = None  # a generator has state
    return {k: _plain(v) for k, v in given.items() if k != _NOT_STORED}


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack_images(kind: str, fields: Fields, arrays: Arrays, d: int) -> WordCounter:
    """Return features of a known kind that have d columns."""
    pyramid = _restored(SpatialPyramid, fields.inner("pyramid"))
    if kind == Centrist.__name__:
        features: Any = Centrist(pyramid, longest_side=_size(fields, "longest_side"))
        features.n_words_ = CODES
    else:
        features = _unpack_bag(fields, arrays, pyramid)
    features.pyramid_ = pyramid
    if pyramid.n_windows * features.n_words_ != d:
        raise fields.fault("pyramid", f"one with {d} windows and words")
    arrays.budget.check(24 * d, f"counts of its {d} windows and words take")
    return features


def _unpack_bag(fields: Fields, arrays: Arrays, pyramid: SpatialPyramid) -> BagOfVisualWords:
    own = fields.inner("codebook")
    by_tables = own.content.get("method") != "kmeans"
    book = _restored(Codebook, own, also=("spread", *(["top"] * by_tables)))
    _take_words(book, own, arrays)
    sift = _restored(DenseSIFT, fields.inner("features"))
    side = min(_LONGEST, sift.longest_side or _LONGEST)
    edges = fields.flag("edges")
    n_patches = (1 + edges) * len(sift.sides) * (side // sift.step + 1) ** 2
    n_bytes = 16 * n_patches * LENGTH + 8 * min(n_patches, AT_ONCE) * book.n_words
    arrays.budget.check(n_bytes, f"{n_patches} patches of an image take")
    sample_size = fields.integer("sample_size", low=1)
    given = {"edges": edges, "sample_size": sample_size}
    bag = BagOfVisualWords(sift, Codebook(**book.get_params()), pyramid, **given)
    bag.features_, bag.codebook_, bag.n_words_ = sift, book, book.n_words * (1 + edges)
    return bag


def _take_words(book: Codebook, own: Fields, arrays: Arrays) -> None:
    """Set the fitted attributes of a codebook."""
    n = book.n_words
    if book.method == "kmeans":
        book.centres_ = arrays.take("centres", np.float32, (n, LENGTH))
    else:
        book.top_ = _above_zero(own, "top")
        book.tables_ = arrays.take("tables", np.float32, (LENGTH * (LEVELS - 1), n))
    book.half_norms_ = arrays.take("half_norms", np.float32, (n,))
    book.spread_ = _above_zero(own, "spread")


def _above_zero(fields: Fields, name: str) -> float:
    value = fields.number(name)
    if not value > 0:
        raise fields.fault(name, "above 0")
    return value


def _size(fields: Fields, name: str) -> int | None:
    if name in fields.content and fields.content[name] is None:
        return None
    return fields.integer(name, low=1, high=LONGEST)


def _restored(cls: type, fields: Fields, also: tuple[str, ...] = ()) -> Any:
    """Build a part from its parameters and check them."""
    names = [name for name in cls().get_params(deep=False) if name != _NOT_STORED]
    if wrong := sorted({*names, *also} ^ set(fields.content)):
        raise fields.fault(wrong[0], f"one of the parameters of {cls.__name__}, all of them given")
    given = {name: fields.content[name] for name in names}
    seed = given.get("random_state")
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise fields.fault("random_state", "a seed")
    part = cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
    try:
        part.check()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{fields.path!r}: {error}") from None
    return part
