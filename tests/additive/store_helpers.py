"""Small stores for tests of what goes wrong with them."""

from widemargin import BlockStore

from .problems import histograms

SMALL = 80


def data(n_rows=120):
    return histograms(3, n_rows)


def chunks(n_rows=120, size=10):
    X, y = data(n_rows)
    return [(X[k : k + size], y[k : k + size]) for k in range(0, n_rows, size)]


def build(folder, parts=None, **options):
    return BlockStore.build(folder, chunks() if parts is None else parts,
                            **{"values_per_block": SMALL, **options})  # fmt: skip


def content(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "claim.lock"}


# A program that builds a store and writes a line for every step.
BUILD = """
import sys
import numpy as np
from widemargin import BlockStore
from widemargin.additive import store_building
store_building._SECONDS_BETWEEN = 0.0

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(200):
        yield rng.random((50, 20)), rng.integers(0, 2, 50)

BlockStore.build(sys.argv[1], chunks(), values_per_block=2000, told=lambda *step: print(flush=True))
"""
