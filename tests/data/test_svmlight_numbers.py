"""svmlight text: decimal numbers become the nearest of their type."""

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from .helpers import assert_same_bits, finite, refused
from .svmlight_helpers import each_dtype, parse


def read_numbers(texts, dtype=np.float64):
    """Each text as a label and as a value."""
    data = parse("".join(f"{t} 1:{t}\n" for t in texts), dtype=dtype)
    return data.y, data.X.data


def assert_exact(texts, dtype=np.float64):
    expected = np.array([float(t) for t in texts])
    labels, values = read_numbers(texts, dtype)
    assert_same_bits(labels, expected)
    assert_same_bits(values, expected.astype(dtype))


@given(st.lists(finite, min_size=1, max_size=40))
def test_doubles_are_exact(numbers):
    formats = ("{!r}", "{:.17g}", "{:.25e}", "{:.3f}", "{:+.6G}")
    texts = [form.format(number) for number in numbers for form in formats]
    assert_exact([t for t in texts if np.isfinite(float(t))])


digits = st.text("0123456789", max_size=45)


@st.composite
def decimals(draw):
    whole, fraction = draw(digits), draw(digits)
    text = draw(st.sampled_from(["", "+", "-"])) + (whole or ("" if fraction else "0"))
    text += "." + fraction if fraction or draw(st.booleans()) else ""
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+", "-"]))
        text += draw(st.integers(0, 400).map(str))
    return text


@each_dtype
@settings(max_examples=100)
@given(texts=st.lists(decimals(), min_size=1, max_size=40))
def test_decimals_are_exact_or_too_large(dtype, texts):
    with np.errstate(over="ignore"):
        fits = [bool(np.isfinite(dtype(float(t)))) for t in texts]
    texts_that_fit = list(itertools.compress(texts, fits))
    if texts_that_fit:
        assert_exact(texts_that_fit, dtype)
    for text in itertools.compress(texts, np.logical_not(fits)):
        with refused("line 1, column 5: ", "too large for the number type"):
            parse(f"1 1:{text}", dtype=dtype)


@given(
    number=st.floats(0, 1e308),
    form=st.sampled_from(["{:f}", "{:e}"]),
    beside=st.sampled_from([-1, 0, 1]),
)
@example(number=0.0, form="{:e}", beside=0)  # half of the least number
@example(number=5e-324, form="{:f}", beside=1)
@example(number=2.2250738585072009e-308, form="{:e}", beside=0)
@example(number=9007199254740992.0, form="{:f}", beside=1)
def test_halfway_between_doubles(number, form, beside):
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 2000, -5000, 5000
        half = (Decimal(number) + Decimal(np.nextafter(number, np.inf))) / 2
        assert_exact([form.format(half + beside * half.scaleb(-1000))])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0", -0.0), ("+5", 5.0), ("5.", 5.0), (".5", 0.5), ("-.5", -0.5), ("1E+3", 1000.0),
        ("0e999999999999999999999", 0.0), ("1e-400", 0.0), ("-1e-400", -0.0),
        ("1e-99999999999999999999", 0.0), ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 400 + "e-400", 1.0), ("4.9e-324", 5e-324), ("2.4e-324", 0.0),
        ("1.7976931348623157e308", 1.7976931348623157e308), ("9007199254740993", 2.0**53),
        ("0" * 30 + "1", 1.0), ("1e22", 1e22), ("1e23", 1e23), ("3e-23", 3e-23),
        ("18446744073709551615", 2.0**64), ("18446744073709551617", 2.0**64),
        ("8.5e22", 8.5e22), ("1e00000000000000000001", 10.0),
    ],
)  # fmt: skip
def test_notations(text, value):
    assert_same_bits(np.concatenate(read_numbers([text])), np.array([value, value]))


@pytest.mark.parametrize("text", ["1.7976931348623159e308", "1e309", "-2e308", "1" * 400, "1e9999"])
def test_too_large(text):
    with refused("line 1, column 5: ", "too large for the number type"):
        parse(f"1 1:{text}")
    with refused("line 1, column 1: ", "is not a finite number"):
        parse(f"{text} 1:1")


def test_largest_of_float32():
    large = "3.4028235677973366e38"  # halfway to what would be infinite
    assert_same_bits(
        parse("1 1:3.4028235677973362e38", dtype=np.float32).X.data,
        np.array([np.finfo(np.float32).max]),
    )
    with refused("line 1, column 5: ", large):
        parse(f"1 1:{large}", dtype=np.float32)
    assert parse(f"1 1:{large}").X.data[0] == float(large)
