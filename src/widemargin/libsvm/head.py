"""Parse the head of a model file: lines with a name and its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_SHOWN = 40  # characters of a bad value in a message
_LARGEST = 2**31 - 1


class Head:
    """The lines before the model's numbers.

    Parameters
    ----------
    text : bytes
    last : str
        The line that ends the head; it must occur.
    known : sequence of str
        Names that may occur, each once.
    path : str
        For messages.
    """

    def __init__(self, text: bytes, last: str, known: Sequence[str], path: str):
        self.path = path
        self._values: dict[str, list[bytes]] = {}
        begin = 0
        while True:
            end = text.find(b"\n", begin)
            name, *values = text[begin : end if end >= 0 else len(text)].split() or [b""]
            said = name.decode(errors="replace")
            if end < 0:
                raise ValueError(f"{path!r}: the model ends before the line {last!r}.")
            begin = end + 1
            if said == last and not values:
                break
            if said not in known or said in self._values:
                raise ValueError(
                    f"{path!r}: a line begins with {said[:_SHOWN]!r}, which is not one of "
                    f"{', '.join(known)}, or comes twice."
                )
            self._values[said] = values
        self.length = begin

    def has(self, name: str) -> bool:
        return name in self._values

    def fault(self, name: str, what: str) -> ValueError:
        shown = b" ".join(self._values.get(name, [b"nothing"]))[:_SHOWN].decode(errors="replace")
        return ValueError(f"{self.path!r}: {name} must be {what}, not {shown!r}.")

    def word(self, name: str) -> str:
        values = self._values.get(name, [])
        if len(values) != 1:
            raise self.fault(name, "one word")
        return values[0].decode(errors="replace")

    def numbers(self, name: str, n: int) -> np.ndarray:
        """Return n finite numbers."""
        found = finite(self._values.get(name, []))
        if found is None or len(found) != n:
            raise self.fault(name, f"{n} finite number{'s' * (n != 1)}")
        return found

    def number(self, name: str) -> float:
        return float(self.numbers(name, 1)[0])

    def integers(self, name: str, n: int, low: int = -_LARGEST - 1) -> np.ndarray:
        """Return n integers of 32 bits."""
        found = self.numbers(name, n)
        if np.any(found != np.round(found)) or np.any((found < low) | (found > _LARGEST)):
            raise self.fault(name, f"whole numbers from {low} to {_LARGEST}")
        return found.astype(np.int64)

    def integer(self, name: str, low: int) -> int:
        return int(self.integers(name, 1, low)[0])

    def labels(self) -> np.ndarray:
        """Return two or more different labels, in the order of the file."""
        n_classes = self.integer("nr_class", 0)
        if n_classes < 2:
            raise self.fault("nr_class", "2 or more")
        labels = self.integers("label", n_classes)
        if len(np.unique(labels)) < n_classes:
            raise self.fault("label", "different whole numbers")
        return labels


def finite(words: Sequence[bytes]) -> np.ndarray | None:
    """Parse words as numbers; return None if one is not a finite number."""
    if any(b"_" in word for word in words):  # Python allows 1_0
        return None
    try:
        found = np.array([float(word) for word in words])
    except ValueError:
        return None
    return found if np.all(np.isfinite(found)) else None
