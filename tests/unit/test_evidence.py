"""Evidence brought to chunks: by quote, block, place, document; and what is stale."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import reference_evidence as reference
from ragcore import schema
from ragcore.errors import InputError
from ragcore.evidence import evidence_of
from ragcore.placing import BY_BLOCK, BY_DOCUMENT, BY_ID, BY_QUOTE, NOWHERE, UNCHECKED, ratio_of
from ragcore.quotes import Document, folded
from ragcore.units import Chunks, Vocabulary

CHUNK = dict.fromkeys(
    ("chunk_id", "doc_id", "doc_version", "page", "block_first", "block_last", "start", "end",
     "text")
)  # fmt: skip
ITEM = dict.fromkeys(schema.EVIDENCE.names)


def chunk_table(chunks, **columns):
    names = schema.CHUNKS
    given = {n: pa.array([{**CHUNK, **c}[n] for c in chunks], names.field(n).type) for n in CHUNK}
    return pa.table({**given, **columns})


def case_table(cases, **columns):
    lists = [[{**ITEM, **item} for item in items] for items in cases]
    return pa.table({
        "case_id": [f"q{i}" for i in range(len(cases))],
        "evidence": pa.array(lists, pa.list_(schema.EVIDENCE)), **columns,
    })  # fmt: skip


def placed(cases, chunks, ratio=1.0, **columns):
    table = chunk_table(chunks, **columns)
    known = Chunks(table, "chunks")
    vocabulary = Vocabulary(known)
    found = evidence_of(case_table(cases), known, vocabulary, ratio)
    names = [
        sorted(vocabulary.name(c) for c in found.units[a:b])
        for a, b in zip(found.covers[:-1], found.covers[1:], strict=True)
    ]
    return found, names


def chunks_of(item, chunks, ratio=1.0):
    found, names = placed([[item]], chunks, ratio)
    return names[0], int(found.way[0]), found.stale_items(case_table([[item]]))


TEXTS = [
    {"chunk_id": "a", "doc_id": "d", "text": "One two three.", "block_first": 0, "start": 0},
    {"chunk_id": "b", "doc_id": "d", "text": "four five\n six.", "block_first": 1, "start": 15},
    {"chunk_id": "c", "doc_id": "e", "text": "One two three.", "block_first": 0, "start": 0},
]


@pytest.mark.parametrize(
    ("item", "wanted", "way"),
    [
        ({"doc_id": "d", "chunk_id": "a"}, ["a"], BY_ID),
        ({"doc_id": "d"}, ["a", "b"], BY_DOCUMENT),
        ({"doc_id": "d", "quote": "two  three."}, ["a"], BY_QUOTE),
        ({"doc_id": "d", "quote": "five six"}, ["b"], BY_QUOTE),
        ({"doc_id": "d", "chunk_id": "b", "quote": "One two"}, ["a"], BY_QUOTE),
        ({"doc_id": "d", "quote": "three. four"}, [], BY_QUOTE),
        ({"doc_id": "d", "quote": "three. four", "block": 1}, None, None),
        ({"doc_id": "d", "block": 1}, ["b"], BY_BLOCK),
        ({"doc_id": "d", "block": 7}, [], BY_BLOCK),
        ({"doc_id": "d", "start": 4, "end": 7}, ["a"], 3),
        ({"doc_id": "d", "start": 10, "end": 20}, [], 3),
        ({"doc_id": "d", "page": 1}, ["a", "b"], UNCHECKED),
        ({"doc_id": "z", "quote": "One"}, ["z"], NOWHERE),
        ({"doc_id": "c"}, ["c"], BY_ID),
        ({"doc_id": "d", "quote": " \n"}, ["a", "b"], BY_DOCUMENT),
    ],
)
def test_item__comes_to_its_chunks(item, wanted, way):
    names, how, stale = chunks_of(item, TEXTS)
    if wanted is None:
        assert names == []
        assert stale[0]["why"] == "quote-moved"
    else:
        assert (names, how, stale) == (wanted, way, [])
    assert reference.where(item, TEXTS)[1] == names


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"doc_id": "d", "quote": "seven"}, "quote-gone"),
        ({"doc_id": "d", "quote": "four", "block": 0}, "quote-moved"),
        ({"doc_id": "d", "doc_version": "v9", "quote": "four"}, "version-gone"),
        ({"doc_id": "d", "doc_version": "v9"}, "version-gone"),
        ({"doc_id": "d", "chunk_id": "a", "doc_version": "v9"}, "version-gone"),
    ],
)
def test_item__whose_quote_or_revision_is_gone_is_stale(item, why):
    versioned = [{**c, "doc_version": "v1"} for c in TEXTS]
    names, _, stale = chunks_of(item, versioned)
    assert names == []
    assert [s["why"] for s in stale] == [why]
    assert stale[0]["case_id"] == "q0"
    assert stale[0]["item"] == 0
    assert reference.where(item, versioned) == (why, [])
    gone = {**item, "in_snapshot": False}
    assert chunks_of(gone, versioned)[2] == []


def test_item__in_another_revision_is_not_looked_at():
    both = [{**TEXTS[0], "doc_version": "v1"}, {**TEXTS[0], "chunk_id": "a2", "doc_version": "v2"}]
    assert chunks_of({"doc_id": "d", "doc_version": "v2", "quote": "One"}, both)[0] == ["a2"]
    assert chunks_of({"doc_id": "d", "quote": "One"}, both)[0] == ["a", "a2"]
    assert chunks_of({"doc_id": "d", "doc_version": "v1"}, both)[0] == ["a"]


def test_place__tells_the_same_words_apart():
    twice = [{**TEXTS[0], "start": 0}, {**TEXTS[0], "chunk_id": "b", "start": 15}]
    assert chunks_of({"doc_id": "d", "quote": "two", "start": 19, "end": 22}, twice)[0] == ["b"]
    assert chunks_of({"doc_id": "d", "quote": "two"}, twice)[0] == ["a", "b"]
    assert chunks_of({"doc_id": "d", "quote": "two", "start": 90, "end": 93}, twice)[0] == [
        "a",
        "b",
    ]


def test_ratio__decides_where_only_code_points_are_said():
    bare = [{"chunk_id": "a", "doc_id": "d", "start": 0, "end": 10},
            {"chunk_id": "b", "doc_id": "d", "start": 10, "end": 20}]  # fmt: skip
    item = {"doc_id": "d", "start": 6, "end": 16}
    assert chunks_of(item, bare)[0] == []
    assert chunks_of(item, bare, 0.6)[0] == ["b"]
    assert chunks_of(item, bare, 0.4)[0] == ["a", "b"]
    assert chunks_of(item, bare, 0.61)[0] == []


@pytest.mark.parametrize("bad", [0, -1, 1.5, "half", True, float("nan")])
def test_ratio__that_is_none_is_refused(bad):
    with pytest.raises(InputError, match="overlap = "):
        ratio_of({"overlap": bad}, "suite.toml")
    assert ratio_of({}, "suite.toml") == 1.0


def test_texts__are_those_of_the_case_language():
    table = chunk_table(
        [{"chunk_id": "a", "doc_id": "d", "text": "rooms cost 750", "start": 0, "end": 14}],
        text_zh=pa.array(["每晚 750 元"], pa.large_string()),
    )
    known = Chunks(table, "chunks")
    cases = case_table(
        [[{"doc_id": "d", "quote": "每晚 750"}], [{"doc_id": "d", "quote": "每晚 750"}],
         [{"doc_id": "d", "start": 0, "end": 8}]],
        lang=["zh", "en", "zh"],
    )  # fmt: skip
    found = evidence_of(cases, known, Vocabulary(known))
    assert found.stale.tolist() == [False, True, False]
    assert found.covers.tolist() == [0, 1, 1, 2]


def test_composed_letters_and_blanks__do_not_matter():
    chunk = {"chunk_id": "a", "doc_id": "d", "text": "Caf\u0065\u0301\u00a0 du\tNord"}
    assert chunks_of({"doc_id": "d", "quote": "Caf\u00e9 du Nord"}, [chunk])[0] == ["a"]
    assert folded(" \u3000a\n\n b ") == "a b"


def test_items__that_are_one_place_count_once():
    found, _ = placed(
        [[{"doc_id": "d", "required": True}, {"doc_id": "d", "relevance": 3}, {"doc_id": "c"},
          {"doc_id": "d", "quote": "two", "required": True}, {"doc_id": "d", "quote": "two"}],
         [{"doc_id": "d"}]],
        TEXTS,
    )  # fmt: skip
    assert found.first.tolist() == [True, False, True, True, False, True]
    assert found.required.tolist() == [True, False, False, True, False, False]
    assert found.relevance.tolist() == [3, 3, 1, 1, 1, 1]


def test_chunks__of_no_row_and_of_no_item():
    found, names = placed([[{"doc_id": "d", "quote": "x", "block": 1}], []], [])
    assert names == [["d"]]
    assert found.way.tolist() == [NOWHERE]
    found, names = placed([[], []], TEXTS)
    assert names == []
    assert found.covers.tolist() == [0]


WORDS = ["red", "Blue", "caf\u00e9", "cafe\u0301", "七百", "10", "x"]


def random_document(draw, doc):
    """Chunks cut out of one text, with or without places, overlap, blocks, revisions, texts."""
    words = [draw.choice(WORDS) for _ in range(draw.randint(1, 14))]
    text = draw.choice([" ", "  ", "\n"]).join(words)
    step = draw.randint(1, 12)
    overlap = draw.choice([0, 0, draw.randint(0, 4)])
    with_start, with_end, with_text = (draw.random() < p for p in (0.7, 0.5, 0.9))
    with_block, version = draw.random() < 0.5, draw.choice([None, "v1", "v2"])
    out, mixed = [], draw.random() < 0.3
    for at in range(0, len(text), step):
        end = min(at + step + overlap, len(text))
        chunk = {"chunk_id": f"{doc}#{len(out)}", "doc_id": doc, "doc_version": version}
        if mixed:
            chunk["doc_version"] = draw.choice([None, "v1", "v2"])
        if with_start:
            chunk["start"] = at
            if with_end:
                chunk["end"] = end
        if with_text and draw.random() < 0.95:
            chunk["text"] = text[at:end]
        if with_block:
            chunk["block_first"] = at // 10
            chunk["block_last"] = (end - 1) // 10 if draw.random() < 0.9 else None
        out.append(chunk)
    return text, out


def random_item(draw, texts):
    doc = draw.choice([*texts, "elsewhere"])
    item = {"doc_id": doc}
    text = texts.get(doc, "gone")
    a = draw.randrange(len(text))
    b = draw.randint(a + 1, min(len(text), a + 9))
    if draw.random() < 0.6:
        item["quote"] = text[a:b] if draw.random() < 0.9 else "nothing like it"
    if draw.random() < 0.4:
        item["start"], item["end"] = a, b
    if draw.random() < 0.4:
        item["block"] = draw.choice([a // 10, a // 10, draw.randint(0, 5)])
    if draw.random() < 0.2:
        item["chunk_id"] = f"{doc}#{draw.randint(0, 4)}"
    if draw.random() < 0.3:
        item["doc_version"] = draw.choice(["v1", "v2", "v3"])
    if draw.random() < 0.1:
        item["in_snapshot"] = False
    return item


@pytest.mark.parametrize("seed", range(40))
def test_items__come_where_plain_python_puts_them(seed):
    draw = random.Random(seed)
    texts, chunks = {}, []
    for i in range(draw.randint(1, 4)):
        texts[f"d{i}"], own = random_document(draw, f"d{i}")
        chunks += own
    draw.shuffle(chunks)
    cases = [[random_item(draw, texts) for _ in range(draw.randint(0, 5))] for _ in range(12)]
    ratio = draw.choice([1.0, 0.5, 0.3])
    found, names = placed(cases, chunks, ratio)
    why = {(s["case_id"], s["item"]): s["why"] for s in found.stale_items(case_table(cases))}
    at = 0
    for case, items in enumerate(cases):
        for i, item in enumerate(items):
            wanted = reference.where(item, chunks, ratio)
            got = why.get((f"q{case}", i), ""), names[at]
            assert got == (wanted[0], sorted(wanted[1])), (item, chunks)
            at += 1


def test_document__finds_a_quote_in_every_chunk_that_holds_it():
    document = Document([4, 2, 9], ["a b a", None, "b  a\nb"], [0, -1, 5])
    assert document.holding("a") == [4, 9]
    assert document.holding("b a") == [4, 9]
    assert document.holding("a b a b") == []
    assert document.contains("b ab a", [4, 9])
    assert not Document([0], [None], [-1]).readable([0])
    assert document.readable([2, 9])


def test_quotes__that_chunks_were_cut_through_are_not_stale():
    cut = [{"chunk_id": "a", "doc_id": "d", "text": "banana"},
           {"chunk_id": "b", "doc_id": "d", "text": "apple pie"}]  # fmt: skip
    for quote in ("banana apple", "nanaapple p"):
        assert chunks_of({"doc_id": "d", "quote": quote}, cut) == ([], BY_QUOTE, [])
    shared = [{"chunk_id": "a", "doc_id": "d", "text": "one two three"},
              {"chunk_id": "b", "doc_id": "d", "text": "three four"}]  # fmt: skip
    assert chunks_of({"doc_id": "d", "quote": "two three four"}, shared) == ([], BY_QUOTE, [])


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"doc_id": "d", "role": "supportive"}, "role 'supportive'; expected one of supporting"),
        ({"doc_id": "d", "start": 9, "end": 4}, "evidence from 9 to 4"),
    ],
)
def test_labels__that_say_nothing_sound_are_refused(item, words):
    cases = pa.table({"case_id": ["a", "b"], "evidence": [[], [item]]})
    with pytest.raises(InputError, match=f"cases row 2: .*{words}"):
        evidence_of(cases, None, Vocabulary(None))
