"""Whether two models are the same, to the last bit."""

import dataclasses

import numpy as np


def assert_same(a, b, where="model") -> None:
    """Equal in type, shape and every bit, however deep."""
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray), where
        assert a.dtype == b.dtype, where
        if a.dtype == object:  # in which NaN is not equal to itself
            assert_same(a.tolist(), b.tolist(), where)
            return
        np.testing.assert_array_equal(a, b, err_msg=where, strict=True)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{where}[{k}]")
    elif dataclasses.is_dataclass(a) and not isinstance(a, type):
        assert type(a) is type(b), where
        for field in dataclasses.fields(a):
            if field.name not in _OF_TRAINING:
                assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif hasattr(a, "get_params"):
        assert_same_estimator(a, b, where)
    elif callable(a) and not isinstance(a, type):
        assert callable(b), where
    else:
        assert a is b or a == b or (a != a and b != b), f"{where}: {a!r} and {b!r}"
        flags = isinstance(a, (bool, np.bool_)), isinstance(b, (bool, np.bool_))
        assert flags[0] == flags[1], f"{where}: {a!r} and {b!r}"


# Estimates of speed, a training matrix, and the variables of a recorded level.
_OF_TRAINING = ("cost", "values", "row", "alpha", "label")
_NOT_STORED = (
    "_dual",
    "_duals",
    "_parent_callback_ctx",
    "_skl_callbacks",
    "_transformers_feature_names_out",  # which every transform sets anew
)


def assert_same_estimator(a, b, where="model") -> None:
    """The same parameters and the same fitted attributes, private ones included."""
    assert type(a) is type(b), where
    assert_same(a.get_params(deep=False), b.get_params(deep=False), f"{where} parameters")
    held = {k: v for k, v in vars(a).items() if k not in _NOT_STORED}
    again = {k: v for k, v in vars(b).items() if k not in _NOT_STORED}
    assert set(held) == set(again), where
    for name in held:
        assert_same(held[name], again[name], f"{where}.{name}")
