"""Models of LIBSVM and LIBLINEAR: their text, and estimators that predict as they do."""

from widemargin.libsvm.reading import is_foreign, load_foreign

__all__ = ["is_foreign", "load_foreign"]
