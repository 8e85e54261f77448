"""Kernels of citations against plain Python: places, quotes, labelled spans, access, values."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels import amounts, citations
from ragcore_kernels.citations import NO, NO_PLACE, UNKNOWN, WHOLE_END, YES


class Texts:
    """Texts as kernels read them: byte offsets, an address, and what keeps it alive."""

    def __init__(self, *texts):
        parts = [text.encode() for text in texts]
        self.offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        self.data = np.frombuffer(b"".join(parts) + b"!", np.uint8)
        self.address = int(self.data.ctypes.data)


def ints(*values):
    return np.array(values, np.int64)


def located(text, first=NO_PLACE, last=NO_PLACE, quote=None):
    """(verdict, code points, bytes) of one citation."""
    texts, quotes = Texts("zuvor", text), Texts(quote or "")
    out, low, high = np.full(1, UNKNOWN, np.int8), np.zeros((1, 2), int), np.zeros((1, 2), int)
    citations.locate(
        0, 1, np.ones(1, np.int8), ints(1), ints(first), ints(last),
        np.array([quote is not None], np.int8), texts.offsets, texts.address, quotes.offsets,
        quotes.address, out, low, high,
    )  # fmt: skip
    cut = bytes(texts.data[low[0, 0] : high[0, 0]]).decode()
    return int(out[0]), (int(low[0, 1]), int(high[0, 1])), cut


TEXT = "不超过 750 元。é🙂 end"


@pytest.mark.parametrize("first", range(-2, 18))
@pytest.mark.parametrize("length", range(4))
def test_locate__place_counts_code_points(first, length):
    last = first + length
    if first == NO_PLACE:
        return
    verdict, place, cut = located(TEXT, first, last)
    inside = first >= 0 and last <= len(TEXT)
    assert verdict == (YES if inside else NO)
    if inside:
        assert (place, cut) == ((first, last), TEXT[first:last])


@pytest.mark.parametrize(
    ("quote", "first", "last", "expected"),
    [
        ("750 元", 4, 9, YES), ("750 元", 4, 8, NO), ("750 元", 5, 10, NO), ("751 元", 4, 9, NO),
        ("é🙂", NO_PLACE, NO_PLACE, YES), ("e🙂", NO_PLACE, NO_PLACE, NO),
        ("", 3, 3, YES), ("", NO_PLACE, NO_PLACE, YES), (TEXT + "!", NO_PLACE, NO_PLACE, NO),
        (TEXT, 0, len(TEXT), YES), ("x", 9, 3, NO),
    ],
)  # fmt: skip
def test_locate__quote_is_exact(quote, first, last, expected):
    verdict, place, cut = located(TEXT, first, last, quote)
    assert verdict == expected
    if expected == YES:
        assert cut == quote
        assert TEXT[slice(*place)] == quote


def test_locate__nothing_said_is_the_whole_and_the_text_before_is_not_it():
    assert located(TEXT) == (YES, (0, len(TEXT)), TEXT)
    assert located("", 0, 0) == (YES, (0, 0), "")
    assert located(TEXT, quote="zuvor")[0] == NO


def test_locate__leaves_alone_what_is_not_wanted():
    out, both = np.full(1, UNKNOWN, np.int8), np.zeros((1, 2), int)
    none = np.zeros(1, np.int8)
    citations.locate(0, 1, none, ints(-1), ints(0), ints(9), none, ints(0, 0), 0, ints(0, 0), 0,
                     out, both, both)  # fmt: skip
    assert out.tolist() == [UNKNOWN]


# --- units, spans, access: many at random


def world(seed):
    draw = random.Random(seed)
    n, units = draw.randrange(1, 6), 7
    counts = [draw.randrange(4) for _ in range(n)]
    owner = [r for r, count in enumerate(counts) for _ in range(count)]
    unit = [draw.randrange(-1, units) for _ in owner]
    return draw, n, units, owner, unit


def flat(lists):
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return offsets, np.array([x for one in lists for x in one], np.int64)


def halves(work, n):
    """Run `work(begin, end)` in two parts."""
    work(0, n // 2)
    work(n // 2, n)


@pytest.mark.parametrize("seed", range(30))
def test_find_shown__is_membership(seed):
    draw, n, units, owner, unit = world(seed)
    lists = [[draw.randrange(-1, units) for _ in range(draw.randrange(4))] for _ in range(n)]
    out = np.full(len(owner), -9, np.int8)
    offsets, codes = flat(lists)
    halves(
        lambda a, b: citations.find_shown(a, b, ints(*owner), ints(*unit), offsets, codes, out),
        len(owner),
    )
    assert out.tolist() == [
        YES if u >= 0 and u in lists[r] else NO for r, u in zip(owner, unit, strict=True)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_spans_inside__is_the_plain_rule(seed):
    draw, n, units, owner, unit = world(seed)
    label_of = [draw.randrange(-1, 3) for _ in range(n)]
    items = [list(range(draw.randrange(4))) for _ in range(3)]
    offsets, _ = flat(items)
    n_items = int(offsets[-1])
    serves = np.array([draw.random() < 0.7 for _ in range(n_items)], np.int8)
    covers = [draw.sample(range(units), draw.randrange(4)) for _ in range(n_items)]
    spans = [draw.choice([(-1, -1), (draw.randrange(5), draw.randrange(5, 9))]) for _ in covers]
    cited = [draw.choice([(-1, -1), (draw.randrange(4), draw.randrange(6, 12))]) for _ in owner]
    whole = np.array([draw.random() < 0.2 for _ in owner], np.int8)
    cited = [(0, WHOLE_END) if w else c for c, w in zip(cited, whole, strict=True)]
    said = [draw.choice(["", "b", "bc"]) for _ in covers]
    texts = [draw.choice(["", "abc", "cb"]) for _ in owner]
    usable = np.array([draw.random() < 0.8 for _ in owner], np.int8)
    quotes, cut = Texts(*said), Texts(*texts)
    out = np.full(len(owner), -9, np.int8)
    citations.spans_inside(
        0, len(owner), ints(*owner), ints(*unit), ints(*label_of), offsets, serves, *flat(covers),
        ints(*[s[0] for s in spans]), ints(*[s[1] for s in spans]), quotes.offsets, quotes.address,
        ints(*[c[0] for c in cited]), ints(*[c[1] for c in cited]), whole, usable, cut.offsets,
        cut.address, out,
    )  # fmt: skip

    def plain(i):
        label = label_of[owner[i]]
        if label < 0:
            return UNKNOWN
        found = []
        for item in range(offsets[label], offsets[label + 1]):
            if serves[item] and unit[i] in covers[item]:
                inside = None
                if cited[i][0] >= 0 and spans[item][0] >= 0:
                    inside = cited[i][0] <= spans[item][0] and spans[item][1] <= cited[i][1]
                elif usable[i] and said[item]:
                    inside = said[item] in texts[i]
                found.append(True if whole[i] else inside)
        return YES if True in found else UNKNOWN if None in found else NO

    assert out.tolist() == [plain(i) for i in range(len(owner))]


def test_resolve_documents__takes_the_place_then_what_was_shown():
    heads, tails = ints(0, 10, 20, 0), ints(10, 20, 30, 50)
    starts, rows = ints(0, 3, 4), ints(0, 1, 2, 3)
    shown, units = ints(0, 1, 1), ints(2)
    for document, first, last, ranking, expected in (
        (0, 12, 15, 0, 1), (0, NO_PLACE, NO_PLACE, 0, 2), (0, NO_PLACE, NO_PLACE, 1, 0),
        (0, 5, 15, 0, 2), (1, 3, 4, 0, 3), (-1, 3, 4, 0, -7),
    ):  # fmt: skip
        unit = ints(-7)
        citations.resolve_documents(
            0, 1, ints(ranking), ints(document), ints(first), ints(last), shown, units, starts,
            rows, heads, tails, unit,
        )  # fmt: skip
        assert unit.tolist() == [expected], (document, first)


@given(st.lists(st.text("ab 元", max_size=4), max_size=5), st.text("ab 元", max_size=8),
       st.text("ab 元", max_size=8))  # fmt: skip
def test_contained__is_pythons_in(pieces, one, other):
    texts, spans = Texts(*pieces), Texts(one, other)
    out = np.full(len(pieces), -9, np.int8)
    owner = np.zeros(len(pieces), np.int64)
    citations.contained(
        0, len(pieces), owner, texts.offsets, texts.address, ints(0, 2), np.ones(2, np.int8),
        spans.offsets, spans.address, out,
    )  # fmt: skip
    assert out.tolist() == [YES if p in one or p in other else NO for p in pieces]


def test_contained__looks_only_at_usable_spans_of_its_own_answer():
    texts, spans = Texts("a", "a"), Texts("a", "a", "b")
    out = np.full(2, -9, np.int8)
    citations.contained(
        0, 2, ints(0, 1), texts.offsets, texts.address, ints(0, 1, 3), np.array([1, 0, 1], np.int8),
        spans.offsets, spans.address, out,
    )  # fmt: skip
    assert out.tolist() == [YES, NO]


# --- values


def holds(value, text):
    values, spans = Texts(value), Texts(text)
    out = np.full(1, UNKNOWN, np.int8)
    amounts.hold_values(
        0, 1, ints(0), np.ones(1, np.int8), values.offsets, values.address, spans.offsets,
        spans.address, out,
    )  # fmt: skip
    return bool(out[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("750", "at most 750 yuan"), ("750", "不超过750元"), ("750", "750"), ("750", "(750)."),
        ("1500", "up to 1,500 yuan"), ("1,500", "1500"), ("1500000", "1,500,000"),
        ("750", "750.00"), ("7", "007 times"), ("0", "0"), ("0.5", "0.50"), ("750.", "750"),
        ("12 weeks", "每 12 周"), ("52 db", "52 decibels"), ("-5", "at -5 degrees"),
        ("5", "from 3-5 days"), ("2025-01-01", "2025/1/1"), ("yes", "so yes, always"),
        ("v8", "the v8 vacuum"), ("主管", "经主管审批后"), ("new york", "in new york."),
        ("3.1.4", "release 3.1.4"), ("", "anything"), ("é", "un é."), ("750", "750yuan"),
    ],
)  # fmt: skip
def test_values__that_are_held(value, text):
    assert holds(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("750", "7500"), ("750", "1,750"), ("750", "750.5"), ("750", "750,000"), ("750", "0.750"),
        ("750", "k750"), ("750", ""), ("600", "750 in 2025"), ("5", "at -5 degrees"),
        ("-5", "from 3-5 days"), ("yes", "yesterday"), ("yes", "eyes"), ("v8", "v80"),
        ("v8", "kv8"), ("caf", "café"), ("fé", "café"), ("15", "1,5"), ("3.1.4", "3.1.40"),
        ("12 weeks", "4 weeks"), ("1 of 2", "1 of 3"), ("150", "15"), ("1.5", "15"),
    ],
)  # fmt: skip
def test_values__that_are_not(value, text):
    assert not holds(value, text)


@given(st.decimals(0, 10**7, places=2), st.decimals(0, 10**7, places=2))
def test_numbers__are_equal_as_numbers(one, other):
    for a, b in ((one, other), (one, one), (one, one.normalize())):
        for text in (f"{b:f}", f"{b:,f}"):
            assert holds(f"{a:f}", f"it is {text} then") == (Decimal(a) == Decimal(b))


@given(st.text("07 ax.", max_size=12), st.sampled_from(["7", "70", "0", "77"]))
def test_numbers__are_found_where_a_pattern_finds_them(text, value):
    """Of whole numbers alone: texts in which a dot between digits stands are left out."""
    if re.search(r"\d\.\d", text):
        return
    found = {int(m) for m in re.findall(r"(?<![a-z\d])\d+", text)}
    assert holds(value, text) == (int(value) in found)
