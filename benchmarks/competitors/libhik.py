"""libHIK's solver, as PmSVM compared with it."""

from __future__ import annotations

from widemargin import papers


def libhik(C: float = 0.01, levels: int = 3, seed: int = 0):
    """ICD with three levels and C = 0.01 (PmSVM, section 5.1)."""
    return papers.icd(n_bins=levels, C=C, random_state=seed)
