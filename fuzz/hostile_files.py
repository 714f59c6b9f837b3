"""Hostile files of every kind that the package reads, each made from two numbers.

A valid file is taken and changed: bits, lengths, digits, ends, parts of another file, or the
contents within a wrapping that stays whole.  Some are valid but promise or unpack to far more than
they are.  `hostile_file` makes the same file of the same numbers, on every machine.
"""

import bz2
import functools
import gzip
import io
import json
import lzma
import random
import re
import zipfile
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse as sp
from fuzz import fuzz_model, hostile_folders

Make = Callable[[random.Random], bytes]
X = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 0.25], [3.0, 0.0, 0.0]])
NUMBERS = (0, 1, 2, 7, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62,
           2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
TEXTS = (b"", b"-1", b"0", b"99999999999", b"9223372036854775807", b"1e999", b"nan", b"\0", b"\n",
         b'"', b",", b":", b"=", b"(", b"\xff", b"\xef\xbb\xbf", b" " * 300)  # fmt: skip
BOMBS = 2000  # one file in so many is a valid one that is far larger than it looks
UNPACKED = 1 << 27  # bytes, of those that are compressed

# ------------------------------------------------------------------ valid files


def saved(save, *args, **options) -> bytes:
    file = io.BytesIO()
    save(file, *args, **options)
    return file.getvalue()


def stream_bytes(table: pa.Table, rows: int | None = 2, **options) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def parquet_bytes(table: pa.Table, **options) -> bytes:
    return saved(lambda file: pa.parquet.write_table(table, file, **options))


def feather_bytes(table: pa.Table, **options) -> bytes:
    return saved(lambda file: pa.feather.write_feather(table, file, **options))


def zstandard(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


PEOPLE = pa.table(
    {
        "age": [31, 25, 60, 44, 18],
        "label": ["yes", "no", "yes", "no", "yes"],
        "job": ["smith", "clerk", "smith", "nurse, night", "clerk"],
        "kind": pa.array(["a", "b", "a", "a", "b"]).dictionary_encode(),
        "pay": [1.5, -2.25, 0.0, 1e300, 0.1],
        "nothing": pa.nulls(5),
    }
)
NUMBERS_ONLY = pa.table({"y": [0, 1, 1], "a": X[:, 0], "b": X[:, 1].astype(np.float32)})
TABLES = (PEOPLE, PEOPLE.drop_columns("nothing"), NUMBERS_ONLY)
ROWS = sp.csr_array(X)
PARTS = {"data": ROWS.data, "indices": ROWS.indices, "indptr": ROWS.indptr, "shape": ROWS.shape}
TEXT = (
    b"+1 1:0.5 3:2\n-1 2:1 # a comment\n1 3:1e-3\n",
    b"a qid:1 1:1 2:2\nb qid:2 7:1.25\n",
    b"0 0:1 5:2\n1 0:1 2147483649:3\n",
)
CSV = (
    b"age,job,label\n31,smith,1\n25,clerk,0\n",
    b"1;2.5;0\n3;4;1\n",
    b'a\tb\ty\n1\t"x\n2"\t0\n3\tz\t1\n',
)
FOREIGN = (
    b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\n"
    b"probA -2\nprobB 0.5\nnr_sv 1 1\nSV\n1 1:0.5 3:2\n-1 2:1\n",
    b"svm_type nu_svc\nkernel_type polynomial\ndegree 3\ngamma 1\ncoef0 0\nnr_class 3\n"
    b"total_sv 3\nrho 1 2 3\nlabel 7 0 5\nnr_sv 1 1 1\nSV\n1 0.5 1:2\n-1 1 2:1 3:4\n-.5 -1 1:1\n",
    b"svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\n"
    b"nr_sv 1 1\nSV\n1 0:1 \n-1 0:4 \n",
    b"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n0.5 \n1 \n-2 \n3 \n",
    b"solver_type MCSVM_CS\nnr_class 3\nlabel 2 1 3\nnr_feature 2\nbias -1\nw\n1 2 3 \n4 5 6 \n",
)
PACKERS = {
    "gz": functools.partial(gzip.compress, compresslevel=1),
    "bz2": functools.partial(bz2.compress, compresslevel=1),
    "xz": functools.partial(lzma.compress, preset=0),
    "zst": zstandard,
}
SEEDS: dict[str, list[bytes]] = {
    "svmlight": list(TEXT),
    "csv": list(CSV),
    "npy": [saved(np.save, a) for a in (X, X.astype(np.float32).T, X > 1, X.astype(">i2"))],
    "npz": [
        saved(np.savez, X=X, y=[0, 1, 1]),
        saved(np.savez_compressed, X_train=X, y_train=["a", "b", "b"], X_test=X, y_test=["a"] * 3),
        saved(sp.save_npz, ROWS, compressed=False),
        saved(sp.save_npz, sp.csc_array(X)),
    ],
    "arrow": [
        *(feather_bytes(t, compression=c) for t in TABLES for c in ("lz4", "uncompressed")),
        *(stream_bytes(t) for t in TABLES),
        *(stream_bytes(t, compression="zstd") for t in TABLES),
    ],
    "parquet": [
        parquet_bytes(t, row_group_size=2, compression=c)
        for t in TABLES
        for c in ("snappy", "zstd", "none")
    ],
    "model": [path.read_bytes() for path in fuzz_model.FILES],
    "libsvm": list(FOREIGN),
    "range": [b"x\n-1 1\n1 0 2.5\n3 -1 7\n", b"y\n0 1\n-1 3\nx\n0 1\n2 1e-3 4\n"],
}

# ------------------------------------------------------------------ valid files that are too large


@functools.cache
def bombs(kind: str) -> list[bytes]:
    return _BOMBS[kind]() if kind in _BOMBS else SEEDS[kind]


def _packed(pack: Callable) -> list[bytes]:
    """Many streams one after the other: each is quickly made, and all are one text."""
    part, times = 1 << 19, UNPACKED >> 19
    texts = (b"1 1:1\n", b"1 ", b"word 3:1\n", b"a,b\n1,2\n", b"a", b'"\n')
    return [pack((text * part)[:part]) * times for text in texts]


def _npz_bombs() -> list[bytes]:
    rows = np.zeros((UNPACKED // 64, 8))
    many = {**PARTS, "format": "csc", "indptr": [0, 1, 2, 3], "shape": [2**33, 3]}
    return [saved(np.savez_compressed, X=rows), saved(np.savez, **many)]


def _npy_bombs() -> list[bytes]:
    shapes = (b"(99999999999,3)", b"(3,99999999999)", b"(2147483648,1)")
    seed = SEEDS["npy"][0]
    return [seed.replace(b"(3, 3), }".ljust(19), s + b", }".ljust(19 - len(s))) for s in shapes]


def _arrow_bombs() -> list[bytes]:
    zeros = pa.table({"a": np.zeros(UNPACKED // 8), "y": np.zeros(UNPACKED // 8, np.int8)})
    nothing = pa.table({"a": pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])})
    codes = pa.array(np.zeros(1 << 14, np.int8))
    long = pa.table({"a": pa.DictionaryArray.from_arrays(codes, pa.array(["x" * (1 << 18)]))})
    packed = feather_bytes(zeros, compression="zstd")
    return [packed, stream_bytes(nothing, rows=None), feather_bytes(long)]


def _parquet_bombs() -> list[bytes]:
    zeros = pa.table({"a": np.zeros(UNPACKED // 8)})
    long = pa.table({"a": ["x" * (1 << 18)] * 1024, "y": [1] * 1024})
    plain = {"use_dictionary": False, "compression": "zstd", "data_page_size": UNPACKED}
    return [parquet_bytes(zeros), parquet_bytes(long), parquet_bytes(zeros, **plain)]


def _model_bombs() -> list[bytes]:
    """Any number of features, of which next to none is in the file; and one large committee."""
    made = []
    for header, arrays in fuzz_model.MODELS:
        wide = json.loads(json.dumps(header))
        for step in wide.get("steps", [wide]):
            step["n_features"] = 2**31 - 1
        made.append(fuzz_model.sealed(json.dumps(wide), arrays))
        if header.get("parameters", {}).get("early_prediction") == "bcm":
            many = dict(arrays)
            for name in ("coef", "support", "cluster", "vectors.data", "vectors.norms"):
                many[name] = np.concatenate([arrays[name][:1]] * 20_000)
            made.append(fuzz_model.sealed(json.dumps(header), many))
    return made


def _libsvm_bombs() -> list[bytes]:
    """A feature of any number."""
    return [FOREIGN[0].replace(b"3:2", b"2147483647:2")]


_BOMBS = {
    **{kind: functools.partial(_packed, pack) for kind, pack in PACKERS.items()},
    "npz": _npz_bombs,
    "npy": _npy_bombs,
    "arrow": _arrow_bombs,
    "parquet": _parquet_bombs,
    "model": _model_bombs,
    "libsvm": _libsvm_bombs,
}

# ------------------------------------------------------------------ changes


def changed(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """Some changes of the bytes; most files get one or two."""
    for _ in range(1 + int(rng.expovariate(1))):
        content = rng.choice(_CHANGES)(rng, content, others)
    return content


def _flip(rng, content, others):
    if not content:
        return b"\0"
    some = bytearray(content)
    some[rng.randrange(len(some))] ^= 1 << rng.randrange(8)
    return bytes(some)


def _number(rng, content, others):
    """A length, a count or an offset, perhaps."""
    size = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(content) + 1)
    new = (rng.choice(NUMBERS) % (1 << 8 * size)).to_bytes(size, rng.choice(("little", "big")))
    return content[:at] + new + content[at + size :]


def _digits(rng, content, others):
    """Another number where one is written in digits, in a header perhaps."""
    found = list(re.finditer(rb"[0-9]+", content))
    if not found:
        return content
    where = rng.choice(found)
    new = str(rng.choice(NUMBERS)).encode() if rng.random() < 0.7 else rng.choice(TEXTS)
    return content[: where.start()] + new + content[where.end() :]


def _cut(rng, content, others):
    return content[: rng.randrange(len(content) + 1)]


def _splice(rng, content, others):
    other = rng.choice(others)
    at = rng.randrange(len(content) + 1)
    same = at if rng.random() < 0.5 else rng.randrange(len(other) + 1)
    return content[:at] + other[same:]


def _repeat(rng, content, others):
    begin = rng.randrange(len(content) + 1)
    end = min(len(content), begin + rng.randrange(1, 64))
    return content[:begin] + content[begin:end] * rng.randrange(4) + content[end:]


def _insert(rng, content, others):
    at = rng.randrange(len(content) + 1)
    new = rng.choice(TEXTS) if rng.random() < 0.5 else rng.randbytes(rng.randrange(1, 9))
    return content[:at] + new + content[at:]


_CHANGES = (_flip, _flip, _number, _number, _digits, _cut, _splice, _repeat, _insert)

# ------------------------------------------------------------------ files


def _plain(kind: str) -> Make:
    def make(rng: random.Random) -> bytes:
        return changed(rng, rng.choice(SEEDS[kind]), SEEDS[kind])

    return make


def _npz(rng: random.Random) -> bytes:
    """The archive changed, or an archive in order with changed members."""
    if rng.random() < 0.5:
        return _plain("npz")(rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((0, 8))) as archive:
        for name in ("X", "y") if rng.random() < 0.6 else (*PARTS, "format")[: rng.choice((4, 5))]:
            ending = ".npy" if rng.random() < 0.9 else ""
            archive.writestr(name + ending, changed(rng, MEMBERS[name], list(MEMBERS.values())))
    return file.getvalue()


MEMBERS = {
    k: saved(np.save, v) for k, v in {"X": X, "y": [0, 1, 1], "format": "csc", **PARTS}.items()
}


def _compressed(kind: str) -> Make:
    pack = PACKERS[kind]
    inner = [*TEXT, *CSV, *SEEDS["npy"], SEEDS["npz"][0], SEEDS["arrow"][0], SEEDS["parquet"][0]]
    packed = [pack(content) for content in inner]

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            return changed(rng, rng.choice(packed), packed)
        return pack(changed(rng, rng.choice(inner), inner))

    return make


def _model(rng: random.Random) -> bytes:
    """The file changed, or a file in order with a changed header and changed arrays."""
    if rng.random() < 0.7:
        return _plain("model")(rng)
    recipe = fuzz_model.Recipe(rng.randbytes(rng.choice((3, 5, 8, 13))))
    return fuzz_model.changed(recipe, *rng.choice(fuzz_model.MODELS))


def _forged(kind: str) -> Make:
    def make(rng: random.Random) -> bytes:
        return hostile_folders.forged(kind, rng, changed)

    return make


MAKE: dict[str, Make] = {
    **{kind: _plain(kind) for kind in ("svmlight", "csv", "npy", "arrow", "parquet")},
    "npz": _npz,
    "model": _model,
    **{kind: _compressed(kind) for kind in PACKERS},
    **{kind: _plain(kind) for kind in ("libsvm", "range")},
    **{kind: _forged(kind) for kind in hostile_folders.KINDS},
}
KINDS = tuple(MAKE)
# Some are read in a fifth of the time that others take.
SHARES = {"svmlight": 5, "npy": 4, "npz": 4, "arrow": 2, "gz": 2, "bz2": 2, "xz": 2, "model": 2}
TURNS = tuple(kind for kind in KINDS for _ in range(SHARES.get(kind, 1)))


def kind_of(number: int, turns: tuple[str, ...] = TURNS) -> str:
    return turns[number % len(turns)]


def hostile_file(
    seed: int, number: int, turns: tuple[str, ...] = TURNS
) -> tuple[str, bytes, random.Random]:
    """The kind and the contents of a file, and choices that are left for whoever reads it."""
    rng = random.Random(seed << 64 | number)
    kind = kind_of(number, turns)
    if rng.randrange(BOMBS) == 0 and kind not in hostile_folders.KINDS:
        content = rng.choice(bombs(kind))
        return kind, content if rng.random() < 0.5 else changed(rng, content, [content]), rng
    return kind, MAKE[kind](rng), rng
