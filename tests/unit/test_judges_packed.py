"""Packed judgments say the same of judges as the same verdicts one a row."""

from __future__ import annotations

import random

import pytest

import reference_items as plain
from ragcore import schema
from ragcore.errors import InputError
from ragcore.judges.items import items_of
from ragcore.judges.review import review
from ragcore.judges.unpacking import LEFT_OUT, unpacked
from ragcore.judgments import read_judgments

WORDS = [*schema.VERDICTS, None]


def both(seed):
    """Verdicts packed, and the same one a row."""
    rng = random.Random(seed)
    lists, rows = [], []
    for case in "abc":
        for relation in ("correct", "entailed", "covered", "chunk_entails", "relevance",
                         "chunk_entails_reference", "conflict_shown"):  # fmt: skip
            for judge in "jk":
                chunks = rng.sample(["x", "y", "z"], rng.randint(1, 3))
                n = {"relevance": len(chunks), "conflict_shown": 1}.get(relation, 2)
                if relation.startswith("chunk_"):
                    n = 2 * len(chunks)
                said = [rng.choice(WORDS) for _ in range(n)]
                base = {"case_id": case, "relation": relation, "judge": judge,
                        "rationale": f"{case}{relation}{judge}"}  # fmt: skip
                lists.append({**base, "evidence": chunks, "verdicts": said})
                for i, verdict in enumerate(said):
                    claim, given = i, chunks
                    if relation.startswith("chunk_"):
                        claim, given = i // len(chunks), [chunks[i % len(chunks)]]
                    elif relation in ("relevance", "conflict_shown"):
                        claim = None
                        given = [chunks[i]] if relation == "relevance" else chunks
                    row = {**base, "claim": claim, "evidence": given, "verdict": verdict}
                    rows += [row] if verdict else []
    return plain.packed(*lists), plain.table(*rows)


@pytest.mark.parametrize("seed", range(6))
def test_packed__is_the_same_as_one_verdict_a_row(seed):
    lists, rows = both(seed)
    first, second = (review(t, against="model") for t in (lists, rows))
    assert first.table().equals(second.table())
    assert first.queue().equals(second.queue())
    assert first.queue().num_rows > 0


def test_packed__beside_rows():
    lists, rows = both(9)
    human = plain.table(*({"case_id": c, "judge": "h", "rung": "human"} for c in "abc"))
    first, second = review([lists, human]), review([rows, human])
    assert first.table().equals(second.table())
    assert {card.name for card in first.cards} == {"h", "j", "k"}


def test_packed__on_the_context_of_a_trace_is_counted_and_left_out():
    table = plain.packed(
        {"relation": "chunk_entails", "verdicts": ["yes", None, "no"]}, {"verdicts": ["yes"]}
    )
    made, left = unpacked(read_judgments(table))
    assert (len(made), left) == (1, {LEFT_OUT: 2})
    assert f"2 {LEFT_OUT}" in review(table).notes
    assert items_of(read_judgments(table)).counts == {LEFT_OUT: 2}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"relation": "chunk_entails", "evidence": ["x", "y"], "verdicts": ["yes"] * 3}, "3 verd"),
        ({"relation": "relevance", "evidence": ["x"], "verdicts": ["yes"] * 2}, "2 verdicts"),
        ({"relation": "conflict_shown", "verdicts": []}, "0 verdicts"),
    ],
)
def test_packed__lists_that_do_not_fit(row, found):
    with pytest.raises(InputError, match=f"row 2: {found}"):
        review(plain.packed({"verdicts": ["yes"]}, row))


def test_packed__of_nothing():
    assert review(plain.packed()).notes == ["no verdict in the files given"]
