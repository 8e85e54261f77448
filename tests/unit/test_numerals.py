"""Numerals in words against writers that know nothing of the readers, and the one spelling."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers.numerals import chinese, english, spelled
from reference_numerals import ZH, en, zh

whole = st.integers(0, 10**12 - 1) | st.integers(0, 3000)


@given(whole)
def test_chinese__reads_what_is_written(n):
    assert chinese(zh(n)) == n
    if 10 <= n < 20:
        assert chinese(zh(n)[1:]) == n  # 十五
    assert chinese("".join(ZH[int(c)] for c in str(n))) == n


@given(whole.filter(lambda n: n != 1))
def test_english__reads_what_is_written(n):
    text = en(n)
    assert english(text) == [(n, 0, len(text))]
    assert english(text.replace("-", " ").replace(" and", "").upper())[0][0] == n


@given(st.integers(2, 10**9), st.integers(2, 10**9))
def test_english__parts_two_numbers(a, b):
    assert [value for value, _, _ in english(f"{en(a)} {en(b)}")][:1] != []
    assert [v for v, _, _ in english(f"{en(a)}, then {en(b)}")] == [a, b]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("一万五", 15000),
        ("一百二", 120),
        ("三千五", 3500),
        ("一万零五", 10005),
        ("三亿五", 350_000_000),
        ("一万亿", 10**12),
        ("三点一四", Fraction(314, 100)),
        ("二十点五", Fraction(41, 2)),
        ("两千", 2000),
        ("壹佰贰拾叁", 123),
        ("〇", 0),
        ("一百十五", 115),
        ("百万", None),
        ("万一", None),
        ("十一五", None),
        ("一百百", None),
        ("三点十", None),
        ("十百", None),
        ("", None),
        ("点五", None),
        ("三点", None),
        ("零万", None),
        ("abc", None),
    ],
)
def test_chinese__of_hard_numerals(text, value):
    assert chinese(text) == value


@given(st.fractions() | st.decimals(-1000, 1000, places=6).map(Fraction))
def test_spelled__round_trips_and_is_one_form(value):
    text = spelled(value)
    assert Fraction(text) == value
    assert re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?|-?[1-9]\d*/[1-9]\d*", text)
