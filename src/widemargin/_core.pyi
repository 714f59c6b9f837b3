from typing import Any

import numpy as np

LANES: int
PANEL: int

class Rows:
    def __init__(
        self, codes: Any, index: Any, start: Any, n_features: int, n_codes: int
    ) -> None: ...

class Tables:
    def __init__(self, left: Any, right: Any, offset: Any, lanes: int) -> None: ...

class Loss:
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...

class SharedProblem:
    def __init__(
        self,
        rows: Rows,
        tables: Tables,
        label: np.ndarray,
        c: np.ndarray,
        diagonal: np.ndarray,
        bias_value: float,
        loss: Loss,
    ) -> None: ...

class _Dual:
    def sweep(
        self,
        order: np.ndarray,
        begin: int,
        seconds: float,
        shrink: np.ndarray,
        shrunk: np.ndarray,
        account: np.ndarray,
    ) -> int: ...
    def certify(self, begin: int, seconds: float, account: np.ndarray) -> int: ...
    def accumulate(self, begin: int, end: int) -> None: ...

class BoxDual(_Dual):
    def __init__(
        self,
        shared: SharedProblem,
        targets: np.ndarray,
        weights: np.ndarray,
        coef: np.ndarray,
        bias: np.ndarray,
    ) -> None: ...

class SimplexDual(_Dual):
    def __init__(
        self,
        shared: SharedProblem,
        n_classes: int,
        weights: np.ndarray,
        coef: np.ndarray,
        bias: np.ndarray,
    ) -> None: ...

def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
def decide(
    rows: Rows, tables: Tables, weights: np.ndarray, begin: int, end: int, out: np.ndarray
) -> None: ...
def shuffled(rows: np.ndarray, seed: int) -> np.ndarray: ...
def row_sums(rows: Rows, table: np.ndarray) -> np.ndarray: ...
def count_codes(rows: Rows, row_weight: np.ndarray) -> np.ndarray: ...
def largest_codes(rows: Rows) -> np.ndarray: ...
def distinct_values(*args: Any) -> np.ndarray: ...
def value_histogram(*args: Any) -> np.ndarray: ...
def column_ranges(*args: Any) -> np.ndarray: ...
def encode_dense(*args: Any) -> np.ndarray: ...
def encode_sparse(*args: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def compress(codes: np.ndarray, n_codes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def finish_block(
    values: np.ndarray,
    row_norms: np.ndarray,
    column_norms: np.ndarray,
    name: str,
    gamma: float,
    coef0: float,
    degree: int,
) -> None: ...
def select_block(
    alpha: np.ndarray,
    gradient: np.ndarray,
    upper: np.ndarray,
    diagonal: np.ndarray,
    last: np.ndarray,
    size: int,
) -> tuple[np.ndarray, float, float]: ...
def minimise_block(
    q: np.ndarray,
    block: np.ndarray,
    sign: np.ndarray,
    alpha: np.ndarray,
    gradient: np.ndarray,
    upper: np.ndarray,
    diagonal: np.ndarray,
    tol: float,
    coef: np.ndarray,
) -> float: ...
def add_rows(
    pool: np.ndarray,
    slots: np.ndarray,
    coef: np.ndarray,
    sign: np.ndarray,
    begin: int,
    end: int,
    out: np.ndarray,
) -> None: ...
def gather(
    pool: np.ndarray,
    slots: np.ndarray,
    columns: np.ndarray,
    row_sign: np.ndarray,
    column_sign: np.ndarray,
    out: np.ndarray,
) -> None: ...
def compact_rows(
    buffer: np.ndarray, slots: np.ndarray, columns: np.ndarray, old_stride: int, new_stride: int
) -> None: ...
def widen_rows(buffer: np.ndarray, n_rows: int, old_stride: int, new_stride: int) -> None: ...
def sparse_block(
    start: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    column_norms: np.ndarray,
    place: np.ndarray | None,
    panels: np.ndarray,
    row_norms: np.ndarray,
    name: str,
    gamma: float,
    coef0: float,
    degree: int,
    out: np.ndarray,
) -> None: ...
def take_rows(
    start: np.ndarray, index: np.ndarray, value: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def make_panels(
    start: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    place: np.ndarray | None,
    n_features: int,
) -> np.ndarray: ...
def measure_svmlight(text: Any) -> tuple[int, int]: ...
def parse_svmlight(
    text: Any, label: Any, span: Any, qid: Any, end: Any, index: Any, value: Any
) -> tuple: ...
