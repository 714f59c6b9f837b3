"""What the compiled core offers, as cpp/bind_*.cpp bind it (tests/test_core_stub.py compares)."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Places = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
CodedRows = tuple[npt.NDArray[np.int64], Places, Codes]

# ------------------------------------------------------------------ the module

LANES: int
RESTS: int
MOVED: int
PANEL: int

def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...

# ------------------------------------------------------------------ additive: values to codes

class Values:
    def __init__(
        self, data: np.ndarray, index: np.ndarray | None, start: np.ndarray | None, n_features: int
    ) -> None: ...

class Scale:
    def __init__(self, shift: npt.NDArray[np.float64], factor: npt.NDArray[np.float64]) -> None: ...

def distinct_values(values: Values, scale: Scale, limit: int) -> npt.NDArray[np.float64]: ...
def value_histogram(
    values: Values,
    scale: Scale,
    row_weight: npt.NDArray[np.float64],
    top: float,
    skip_zeros: bool,
    n_cells: int,
) -> npt.NDArray[np.float64]: ...
def column_ranges(values: Values) -> npt.NDArray[np.float64]: ...
def encode_dense(values: Values, scale: Scale, thresholds: npt.NDArray[np.float64]) -> Codes: ...
def encode_sparse(
    values: Values, scale: Scale, thresholds: npt.NDArray[np.float64]
) -> CodedRows: ...
def compress(codes: Codes, n_codes: int) -> CodedRows: ...

# ------------------------------------------------------------------ additive: passes over codes

class Rows:
    def __init__(
        self,
        codes: Codes,
        index: Places | None,
        start: npt.NDArray[np.int64] | None,
        n_features: int,
        n_codes: int,
    ) -> None: ...

def shuffled(rows: npt.NDArray[np.int32], seed: int) -> npt.NDArray[np.int32]: ...
def row_sums(rows: Rows, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
def count_codes(rows: Rows, row_weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
def count_cells(
    rows: Rows, row_weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.float64]]: ...
def largest_codes(rows: Rows) -> npt.NDArray[np.int64]: ...
def checksum(bytes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]: ...

# ------------------------------------------------------------------ additive: duals

class Tables:
    def __init__(
        self,
        left: Numbers | None,
        right: Numbers,
        offset: npt.NDArray[np.int64] | None,
        lanes: int,
    ) -> None: ...

class Loss:
    def __init__(self, name: str, epsilon: npt.NDArray[np.float64] | None) -> None: ...
    @property
    def name(self) -> str: ...

class SharedProblem:
    def __init__(
        self,
        rows: Rows,
        tables: Tables,
        label: npt.NDArray[np.int32],
        c: Numbers,
        diagonal: Numbers,
        bias_value: float,
        loss: Loss,
    ) -> None: ...

class _Dual:
    def sweep(
        self,
        order: npt.NDArray[np.int32],
        begin: int,
        seconds: float,
        shrink: npt.NDArray[np.float64],
        status: npt.NDArray[np.uint8],
        account: npt.NDArray[np.float64],
    ) -> int: ...
    def certify(self, begin: int, seconds: float, account: npt.NDArray[np.float64]) -> int: ...
    def accumulate(self, begin: int, end: int) -> None: ...

class BoxDual(_Dual):
    def __init__(
        self,
        shared: SharedProblem,
        targets: Numbers,
        weights: Numbers,
        coef: Numbers,
        bias: Numbers,
        n_threads: int,
    ) -> None: ...
    damping: float

class SimplexDual(_Dual):
    def __init__(
        self,
        shared: SharedProblem,
        n_classes: int,
        weights: Numbers,
        coef: Numbers,
        bias: Numbers,
        n_threads: int,
    ) -> None: ...

def decide(
    rows: Rows, tables: Tables, weights: Numbers, begin: int, end: int, out: Numbers
) -> None: ...

# ------------------------------------------------------------------ kernel: values

class Finish:
    def __init__(self, name: str, gamma: float, coef0: float, degree: int) -> None: ...
    def apply(self, values: Numbers, row_norms: Numbers, column_norms: Numbers) -> None: ...

class CompressedRows:
    def __init__(
        self,
        start: npt.NDArray[np.int64],
        index: npt.NDArray[np.int32],
        value: Numbers,
        norms: Numbers,
        n_features: int,
    ) -> None: ...
    def part(self, begin: int, end: int) -> CompressedRows: ...

class Team:
    def __init__(self, n_threads: int) -> None: ...
    @property
    def n_threads(self) -> int: ...

class Panels:
    def __init__(
        self, values: Numbers, place: npt.NDArray[np.int32] | None, norms: Numbers
    ) -> None: ...
    def fill(
        self,
        rows: CompressedRows,
        finish: Finish,
        out: Numbers,
        slots: npt.NDArray[np.int64] | None,
        team: Team | None,
    ) -> None: ...
    def add(
        self,
        rows: CompressedRows,
        finish: Finish,
        weights: Numbers,
        sums: npt.NDArray[np.float64],
        team: Team | None,
    ) -> None: ...

def compress_rows(
    rows: Numbers, single: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Numbers]: ...
def take_rows(
    start: npt.NDArray[np.int64],
    index: npt.NDArray[np.int32],
    value: Numbers,
    rows: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Numbers]: ...
def make_panels(
    rows: CompressedRows, place: npt.NDArray[np.int32] | None, n_features: int
) -> Numbers: ...

# ------------------------------------------------------------------ kernel: working sets

class DenseKernel:
    def __init__(self, data: Numbers, finish: Finish) -> None: ...

class KeptRows:
    def __init__(self, pool: Numbers, kernel: DenseKernel | None) -> None: ...
    @property
    def n_used(self) -> int: ...
    def add(self, numbers: npt.NDArray[np.int64]) -> int: ...
    def ask_all(self) -> bool: ...

class LinearRows:
    def __init__(
        self,
        start: npt.NDArray[np.int64] | None,
        index: npt.NDArray[np.int32] | None,
        value: Numbers,
        n_features: int,
    ) -> None: ...

class LinearVariables:
    def __init__(
        self,
        rows: LinearRows,
        constant: float,
        row: npt.NDArray[np.int64],
        terms: npt.NDArray[np.float64],
        alpha: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64],
        order: npt.NDArray[np.int64],
    ) -> None: ...
    def sweep(
        self, n_active: int, low: float, high: float, seed: int
    ) -> tuple[int, float, float, int]: ...

class WorkingSet:
    def __init__(
        self,
        alpha: npt.NDArray[np.float64],
        gradient: npt.NDArray[np.float64],
        sign: npt.NDArray[np.float64],
        upper: npt.NDArray[np.float64],
        diagonal: npt.NDArray[np.float64],
        has_offset: bool,
        offset: float,
        turn: float = ...,
    ) -> None: ...
    @property
    def offset(self) -> float: ...
    @property
    def is_kept(self) -> bool: ...
    @property
    def missed(self) -> float: ...
    def select(
        self,
        last: npt.NDArray[np.int64],
        size: int,
        cluster: npt.NDArray[np.int64] | None,
        n_clusters: int,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], float, float]: ...
    def is_due(self, gap: float) -> bool: ...
    def move_offset(self) -> float: ...
    def must_be_met(self, gap: float, primal: float, aim: float) -> bool: ...
    def meet_constraint(
        self, most: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    def less_slack(self, aim: float) -> float: ...
    def set_rest(self, rest: float) -> None: ...
    def minimise(
        self,
        pool: Numbers,
        slots: npt.NDArray[np.int64],
        block: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        tol: float,
        q: Numbers,
        coef: npt.NDArray[np.float64],
        team: Team | None,
    ) -> float: ...
    def descend(
        self,
        kept: KeptRows,
        dual: float,
        tol: float,
        inner_tol: float,
        max_steps: int,
        size: int,
    ) -> tuple[float, float, int, npt.NDArray[np.int64]]: ...
    def refresh(
        self, kept: KeptRows, linear: npt.NDArray[np.float64]
    ) -> tuple[float, float, float, npt.NDArray[np.int64]]: ...
    def meet_constraint_on(self, kept: KeptRows) -> npt.NDArray[np.int64]: ...
    def add_rows(
        self,
        pool: Numbers,
        slots: npt.NDArray[np.int64],
        coef: npt.NDArray[np.float64],
        team: Team | None,
    ) -> None: ...

class SmallProblems:
    def __init__(
        self,
        kept: KeptRows,
        row: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        alpha: npt.NDArray[np.float64],
        sign: npt.NDArray[np.float64],
        linear: npt.NDArray[np.float64],
        upper: npt.NDArray[np.float64],
        diagonal: npt.NDArray[np.float64],
    ) -> None: ...
    def solve(
        self,
        first: int,
        tol: float,
        inner_tol: float,
        max_steps: int,
        size: int,
        seconds: float,
        has_offset: bool,
        found: npt.NDArray[np.float64],
    ) -> int: ...

def add_rows(
    pool: Numbers,
    slots: npt.NDArray[np.int64],
    coef: npt.NDArray[np.float64],
    sign: npt.NDArray[np.float64],
    begin: int,
    end: int,
    out: npt.NDArray[np.float64],
) -> None: ...
def gather(
    pool: Numbers,
    slots: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    out: Numbers,
) -> None: ...
def compact_rows(
    buffer: Numbers,
    slots: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    old_stride: int,
    new_stride: int,
) -> None: ...
def widen_rows(buffer: Numbers, n_rows: int, old_stride: int, new_stride: int) -> None: ...

# ------------------------------------------------------------------ text

def measure_svmlight(text: npt.NDArray[np.uint8] | bytes) -> tuple[int, int]: ...
def parse_svmlight(
    text: npt.NDArray[np.uint8] | bytes,
    label: npt.NDArray[np.float64] | None,
    span: npt.NDArray[np.int64] | None,
    qid: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    index: npt.NDArray[np.int32] | npt.NDArray[np.int64],
    value: Numbers,
) -> tuple[int, int, int, int, int, int, str, int, int]: ...
