"""Models of LIBSVM and LIBLINEAR: reading and writing their files, and predicting with them."""

from widemargin.libsvm.reading import is_foreign, load_foreign

__all__ = ["is_foreign", "load_foreign"]
