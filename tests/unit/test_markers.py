"""Citation markers, the sentences they belong to, and references by index."""

from __future__ import annotations

import re

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import markers, track
from ragcore.answers.sentences import sentences


def cut(text):
    return [each.text for each in markers.parse(text, 9)]


def cited(text, n=9):
    return [each.valid for each in markers.parse(text, n)]


# --- the grammar


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[1]", (1,)), ("[ 1 ]", (1,)), ("[1, 2]", (1, 2)), ("[1,2;3]", (1, 2, 3)),
        ("[1-3]", (1, 2, 3)), ("[1–3, 7]", (1, 2, 3, 7)), ("[2][3]", (2, 3)), ("[1][1]", (1, 1)),
        ("【1】", (1,)), ("【１、２】", (1, 2)), ("［１－３］", (1, 2, 3)), ("[1～2]", (1, 2)),
        ("[01]", (1,)), ("a[3]b", (3,)), ("[0]", (0,)), ("[2019]", (2019,)), ("[5-5]", (5,)),
        ("(1)", ()), ("[a]", ()), ("[]", ()), ("[1", ()), ("1]", ()), ("[^1]", ()), ("[-1]", ()),
        ("[[1]]", (1,)), ("[1]{2}", (1,)), ("[1 passage]", ()), ("[١]", ()),
    ],
)  # fmt: skip
def test_find__of_the_grammar(text, numbers):
    found, malformed = markers.find(text)
    assert tuple(n for each in found for n in each.numbers) == numbers
    assert malformed == []


@pytest.mark.parametrize("text", ["[3-1]", "[1.2]", "[1,]", "[1-101]", "[1 2]", "[1234567890]"])
def test_find__lists_what_only_looks_like_a_marker(text):
    assert markers.find(f"x {text} y") == ([], [(2, 2 + len(text))])
    assert markers.citations(text, 3) == ((), (), (text,))
    assert markers.parse(f"x {text}.", 3)[0].malformed == (text,)


def test_citations__tell_valid_from_unresolved():
    assert markers.citations("[2019] a [1]. [12] [1][0]", 3) == ((1,), (2019, 12, 0), ())
    assert markers.citations("[2-5]", 3) == ((2, 3), (4, 5), ())
    assert markers.citations("[1]", 0) == ((), (1,), ())
    (sentence,) = markers.parse("s [1][9][1]", 3)
    assert sentence.emitted == (1, 9, 1)
    assert (sentence.valid, sentence.unresolved) == ((1,), (9,))


# --- sentences and their markers


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Fact A [1]. Fact B [2].", [(1,), (2,)]),
        ("Fact A. [1] Fact B. [2]", [(1,), (2,)]),
        ("Fact A.[1] Fact B.[2][3] Fact C.", [(1,), (2, 3), ()]),
        ("Fact A. [1][2], [3]", [(1, 2, 3)]),
        ("Fact A [1]. [2] says B.", [(1,), (2,)]),
        ("He left. [1] shows why.", [(), (1,)]),
        ("Fact A [1]. [2] Fact B.", [(1,), (2,)]),
        ("事实一[1]。事实二【2】。", [(1,), (2,)]),
        ("事实一。[1]事实二。【2】", [(1,), (2,)]),
        ("事实一。[1][2]\n事实二！[3]", [(1, 2), (3,)]),
        ("Fact A\n[1]\nFact B", [(1,), ()]),
        ("- Fact A [1]\n- Fact B [2]", [(1,), (2,)]),
        ("See eq. [1]. Then Smith et al. [2] came.", [(1,), (2,)]),
        ("Is it? [1] Yes! [2]", [(1,), (2,)]),
        ("[1]", [(1,)]), ("", []), (" \n ", []),
    ],
)  # fmt: skip
def test_parse__gives_markers_to_their_sentence(text, wanted):
    assert cited(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Dr. No met J. K. Rowling at 3.30 p.m. on Friday. It rained.", 2),
        ("The U.S. army left. They won.", 2),
        ("It cost $3.50. No. 5 was free, e.g. on Mondays.", 2),
        ("1. First item. 2 more follow.\n2. Second item.", 3),
        ("“Stop!” he said. “Why?” She left.", 3),
        ("The end... and more. Wait...", 2),
        ("他说：“走吧。”然后走了。", 2),
        ("圆周率是３．１４。对吗？", 2),
        ("使用 v2.1.3。OK. 好的", 3),
        ("See https://a.b/c.d?e=f. Done.", 2),
        ("In 2019. The", 2),
        ("He said no. They left.", 2),
        ("x.", 1), (".", 1), ("a.b.c", 1),
    ],
)  # fmt: skip
def test_sentences__of_hard_texts(text, wanted):
    assert len(sentences(text)) == wanted, cut(text)


mixed = st.text(st.sampled_from('aB .。!？\n[]1,-29【】x国"”'), max_size=40)


@given(mixed | st.text(max_size=20))
def test_parse__loses_nothing(text):
    found = markers.parse(text, 3)
    whole, _ = markers.find(text)
    assert [n for each in found for n in each.emitted] == [n for m in whole for n in m.numbers]
    at = 0
    for each in found:
        assert at <= each.start < each.end
        assert text[each.start : each.end] == each.text == each.text.strip()
        assert not text[at : each.start].strip()
        assert set(each.emitted) == {*each.valid, *each.unresolved}
        at = each.end
    assert not text[at:].strip()
    joined = markers.citations(text, 3)
    assert set(joined.valid) == {n for each in found for n in each.valid}
    assert sum(joined.malformed.count(m) for m in set(joined.malformed)) == sum(
        len(each.malformed) for each in found
    )


@given(mixed)
def test_find__equals_a_pattern_of_plain_brackets(text):
    plain = re.sub(r"[【】]", "_", text)
    wanted = re.findall(r"\[ *(\d{1,9}(?: *[,] *\d{1,9})*) *\]", plain.replace("\n", " "))
    wanted = [tuple(int(n) for n in each.split(",")) for each in wanted]
    found = [m.numbers for m in markers.find(plain)[0] if "-" not in plain[m.start : m.end]]
    assert found == wanted


def test_without_markers():
    text = "Fact A [1]. In [2019] it was [2, 3]."
    assert markers.without_markers(text) == "Fact A. In it was."
    assert markers.without_markers(text, 3) == "Fact A. In [2019] it was."


def test_parse__cuts_the_sentences_of_clapnq(shared_data):
    """The set's own sentences, joined with markers behind each, come back for the most part."""
    rows = pq.read_table(shared_data / "clapnq/corpus.parquet").to_pylist()
    same = n = 0
    for row in rows:
        parts = [re.sub(r" +([.,;!?])", r"\1", each) for each in row["sentences"]][:9]
        parts = [each for each in parts if re.search(r"\w[.!?]$", each)]
        text = " ".join(f"{each} [{i}]" for i, each in enumerate(parts, 1))
        found = markers.parse(text, 9)
        assert [n for each in found for n in each.valid] == list(range(1, len(parts) + 1))
        n += len(parts)
        same += sum((i,) in [each.valid for each in found] for i in range(1, len(parts) + 1))
    assert n > 2000
    assert same / n > 0.97


# --- references by index


def test_resolve__maps_citations_with_their_references():
    found = track.resolve(["s1", "s1", "s2"], [[2], [0, 1], [3, -1, 2, 2], []])
    assert found.references == ("s1", "s2")
    assert found.citations == ((1,), (0,), (1,), ())
    assert found.unresolved == ((2, 3), (2, -1))
    assert found.merged == 1
    assert found.cited(2) == ["s2"]


@given(
    st.lists(st.sampled_from("abcd"), max_size=8),
    st.lists(st.lists(st.integers(-2, 9), max_size=5), max_size=4),
)
def test_resolve__cites_the_same_documents(references, citations):
    found = track.resolve(references, citations)
    assert len(set(found.references)) == len(found.references) == len(references) - found.merged
    for sentence, indices in enumerate(citations):
        wanted = [references[i] for i in indices if 0 <= i < len(references)]
        assert found.cited(sentence) == list(dict.fromkeys(wanted))
    outside = sum(not 0 <= i < len(references) for indices in citations for i in indices)
    assert len(found.unresolved) == outside


def test_length__counts_white_space_tokens_after_nfkc():
    assert track.length(["one, two;three", "ＡＢＣ\u3000four"]) == 4
    assert track.length([]) == track.length([" "]) == 0
