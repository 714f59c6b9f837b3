"""--memory-limit of a kernel machine: what is left of it for kernel rows."""

from __future__ import annotations

from scipy.sparse import issparse

from widemargin import BlockStore, KernelSVC
from widemargin.cli.arguments import UsageError
from widemargin.cli.storing import bytes_of
from widemargin.kernel.cache import LEAST_SLOTS
from widemargin.kernel.exact import COPIED
from widemargin.kernel.lazy_rows import PREPARED
from widemargin.resources import used_memory

# Measured (benchmarks/kernel_memory.py), with some to spare.
_PER_ROW = 200  # bytes of variables, gradients, bounds, labels and places
_LEAST_ROWS = 2  # times the rows that a cache holds at least: a step has as many again
_WORK = 64e6  # blocks of kernel values on their way


def keep_within(limit: str | None, machine, data) -> None:
    """Set ``cache_size`` so that all of the training stays within the limit, if there is one."""
    if limit is None or not isinstance(machine, KernelSVC) or machine.cache_size != "auto":
        return
    allowed, needed = bytes_of(limit), used_memory() + _beside_kernel_rows(data)
    least = _LEAST_ROWS * 4.0 * LEAST_SLOTS * data.shape[0]
    if allowed < needed + least:
        raise UsageError(
            f"--memory-limit {limit}: {data.shape[0]:,} rows of {data.shape[1]} features take "
            f"{(needed + least) / 1e6:.0f} MB at least."
        )
    machine.set_params(cache_size=(allowed - needed) / 1e6)


def _beside_kernel_rows(data) -> float:
    """What a fit takes beside its data and the cache."""
    own = _WORK + _PER_ROW * data.shape[0]
    if isinstance(data, BlockStore):
        return own + 3 * PREPARED
    stored = 2 * data.nnz if issparse(data) else data.shape[0] * data.shape[1]
    double = 8.0 * stored
    return own + 2 * 4.0 * stored + (double if double <= COPIED else PREPARED)
