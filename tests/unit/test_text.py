"""Words of texts in many scripts, against Unicode's own data and plain rules."""

from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.text import bigrams, close_up, fold, has_unspaced, pieces, words

SCRIPTS = st.text(
    st.one_of(
        st.characters(max_codepoint=127), st.characters(max_codepoint=0x24F),
        st.characters(min_codepoint=0x300, max_codepoint=0x1FFF),
        st.characters(min_codepoint=0x2000, max_codepoint=0xFFFF),
        st.characters(min_codepoint=0x10000, exclude_categories=["Cn", "Co"]),
    ),
    max_size=30,
)  # fmt: skip


def plainly(text: str) -> list[str]:
    """Runs of letters and numbers with their marks, by category, of folded text."""
    out, current = [], ""
    for c in fold(text) + " ":
        kind = unicodedata.category(c)[0]
        if kind in "LN" or (kind == "M" and current):
            current += c
        elif current:
            out, current = [*out, current], ""
    return out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []), ("?!... --", []), ("snake_case 3.14 01", ["snake", "case", "3", "14", "01"]),
        ("It's a C++ (fast) -frost", ["it", "s", "a", "c", "fast", "frost"]),
        ('what: x AND [y]^2 ~w /v/ "u', ["what", "x", "and", "y", "2", "w", "v", "u"]),
        ("naïve Straße ΟΔΟΣ ﬁre", ["naïve", "strasse", "οδοσ", "fire"]),
        ("İstanbul ISTANBUL", ["istanbul", "istanbul"]),
        ("co\u00adoperate b\u200bc d\u2060e \ufefff", ["cooperate", "b", "c", "de", "f"]),
        ("q\u0303x \u0303y", ["q\u0303x", "y"]),
        ("हिन्दी में किताबें", ["हिन्दी", "में", "किताबें"]),
        ("مُحَمَّد می\u200cخواهم", ["مُحَمَّد", "میخواهم"]),
        ("\U00011013\U0001103c\U00011046", ["\U00011013\U0001103c\U00011046"]),  # Brahmi with marks
        ("a\ud800b", ["a", "b"]),
    ],
)  # fmt: skip
def test_words__of_spaced_scripts(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("明天可能下大雪", ["明天", "天可", "可能", "能下", "下大", "大雪"]),
        ("雪", ["雪"]), ("大雪。节气", ["大雪", "节气"]), ("大 雪", ["大", "雪"]),
        ("2016年，ABC中文ＡＢＣ", ["2016", "年", "abc", "中文", "abc"]),
        ("《战国无双3》", ["战国", "国无", "无双", "3"]),
        ("東京タワーへ", ["東京", "京タ", "タワ", "ワー", "ーへ"]), ("ﾀﾜｰ", ["タワ", "ワー"]),
        ("대한민국의 수도", ["대한", "한민", "민국", "국의", "수도"]),
        ("葛\U000e0100城 \U00020bb7野", ["葛城", "\U00020bb7野"]),
        ("กินน้ำ", ["กิน", "นน้\u0e4d", "น้\u0e4dา"]),
        ("人々〇", ["人々", "々〇"]),
    ],
)  # fmt: skip
def test_words__of_unspaced_scripts_are_bigrams(text, expected):
    expected = [unicodedata.normalize("NFKC", word) for word in expected]
    assert words(text) == expected


def test_words__of_composed_and_decomposed_text_are_the_same():
    for text in ("café", "한국어", "ガギグ", "Việt Nam"):
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        assert words(forms[0]) == words(forms[1])


def test_words__can_leave_runs_whole_or_cut_han_by_other_means():
    assert words("大雪节气 abc", unspaced=False) == ["大雪节气", "abc"]
    cut = words("东京タワー 大雪节气", lambda run: [run[:1], "", run[1:]])
    assert cut == ["东", "京", "タワ", "ワー", "大", "雪节气"]


@given(SCRIPTS)
def test_words__unsegmented_are_runs_of_letters_numbers_and_marks(text):
    assert words(text, unspaced=False) == plainly(text)


@given(SCRIPTS)
def test_words__bigrams_hold_the_same_text_as_whole_runs(text):
    found = words(text)
    assert all(found)
    assert not any(c.isspace() for word in found for c in word)
    assert set("".join(found)) == set("".join(plainly(text)))
    assert has_unspaced(text) or found == plainly(text)


@given(SCRIPTS)
def test_fold__is_done_when_done(text):
    assert fold(fold(text)) == fold(text)
    assert words(fold(text)) == words(text)


def test_fold__case_pairs_become_one():
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        if c.upper() != c and len(c.upper()) == 1 and c.upper().lower() == c:
            assert fold(c.upper()) == fold(c), hex(code)


def test_bigrams__of_short_runs():
    assert bigrams("") == []
    assert bigrams("雪") == ["雪"]
    assert bigrams("か\u3099") == ["か\u3099"]
    assert bigrams("雪山") == ["雪山"]
    assert bigrams("一二三四") == [a + b for a, b in pairwise("一二三四")]


def test_unspaced__marks_and_digits_are_none():
    for code in range(0x80, 0x2F000):
        if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me", "Nd"):
            assert not has_unspaced(chr(code)), hex(code)


def test_unspaced__letters_of_those_scripts_and_no_others():
    unspaced = (
        "CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "HANGUL SYLLABLE", "BOPOMOFO LETTER",
        "THAI CHARACTER", "LAO LETTER", "KHMER LETTER", "MYANMAR LETTER",
    )  # fmt: skip
    spaced = (
        "LATIN", "CYRILLIC", "ARABIC", "DEVANAGARI", "GREEK", "HEBREW", "TAMIL", "BENGALI",
        "TIBETAN", "ETHIOPIC", "CHEROKEE",
    )  # fmt: skip
    for code in range(0x80, 0x32000):
        c = chr(code)
        if unicodedata.category(c) in ("Lo", "Lm") and unicodedata.normalize("NFKC", c) == c:
            name = unicodedata.name(c, "")
            assert has_unspaced(c) or not name.startswith(unspaced), name
            assert not (has_unspaced(c) and name.startswith(spaced)), name


def test_pieces__part_unspaced_characters_and_lose_nothing():
    assert pieces("2016年10月") == ["2016", "年", "10", "月"]
    assert pieces("กิน") == ["กิ", "น"]
    assert pieces("abc") == ["abc"]
    assert pieces("") == []


def test_close_up__drops_spaces_beside_unspaced_characters():
    assert close_up("第 5 页 of the book") == "第5页of the book"
    assert close_up("a b") == "a b"
