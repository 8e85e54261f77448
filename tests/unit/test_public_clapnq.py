"""The importer of CLAPNQ: sentences as evidence, and what becomes of those that are gone."""

from __future__ import annotations

import json

import polars as pl
import pytest

import importers
import ragcore
from ragcore.errors import InputError
from ragcore.public import clapnq

SENTENCES = ["Tea is hot .", "Yes .", "Tea is hot ."]


def question(name, text, sentences, *answers):
    return {
        "id": name, "input": f"{name}?",
        "passages": [{"title": "T", "text": text, "sentences": sentences}],
        "output": [{"answer": a, "selected_sentences": s} for a, s in answers],
    }  # fmt: skip


ANSWERABLE = [
    question("1", "Tea is hot .  Yes . Tea is hot .", SENTENCES,
             ("Hot.", SENTENCES[:1]), ("It is.", SENTENCES[1:2]), ("", [])),
    question("2", "Salt .", ["Salt ."], ("", [])),
]  # fmt: skip
UNANSWERABLE = [question("3", "Salt .", ["Salt ."], ("", []))]


def folder(path, *halves):
    for name, rows in zip(clapnq.FILES, halves, strict=False):
        text = "".join(json.dumps(one) + "\n" for one in rows)
        (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def given(tmp_path):
    return clapnq.official(folder(tmp_path, ANSWERABLE, UNANSWERABLE))


def test_build__evidence_is_the_sentences_of_any_answer(given):
    suite = clapnq.build(given)
    first, second, third = suite.cases.to_pylist()
    places = [(one["block"], one["start"], one["end"], one["quote"]) for one in first["evidence"]]
    assert places == [(0, 0, 12, "Tea is hot ."), (1, 14, 19, "Yes .")]
    assert {one["doc_id"] for one in first["evidence"]} == {"p:1"}
    assert all(one["required"] for one in first["evidence"])
    assert first["references"] == ["Hot.", "It is."]
    assert [one["quote"] for one in second["evidence"]] == [None]
    assert second["references"] == []
    assert (third["evidence"], third["answerable"], third["expected_state"]) == (
        [],
        False,
        "abstain",
    )
    assert suite.notes[0].startswith("2 answers of 4 without a text")
    assert suite.notes[1].startswith("1 question with nothing but the passage")
    assert suite.notes[3].startswith("2 passages with the text of another")


def test_build__labels_hold_when_passages_are_cut_at_sentences(given, tmp_path):
    """The second sentence as a chunk of its own is half of what the first question needs."""
    suite = clapnq.build(given)
    made = importers.write(tmp_path / "suite", suite)
    rows = [
        {"chunk_id": "a", "doc_id": "p:1", "start": 0, "end": 13, "text": "Tea is hot . ",
         "block_first": 0, "block_last": 0},
        {"chunk_id": "b", "doc_id": "p:1", "start": 13, "end": 32, "text": " Yes . Tea is hot .",
         "block_first": 1, "block_last": 2},
    ]  # fmt: skip
    importers.cut(made, rows)
    scores = ragcore.score({"1": {"b": 1.0}}, suite=made, measures=["retrieval.coverage", "R@1"])
    assert scores.value("retrieval.coverage", "1") == 0.5
    assert scores.value("R@1", "1") == 0.5


def test_build__a_sentence_that_is_gone_keeps_its_quote_and_is_counted(given):
    corpus = given["corpus"].with_columns(text=pl.col("text").str.replace("Yes", "No"))
    suite = clapnq.build({**given, "corpus": corpus})
    item = suite.cases.to_pylist()[0]["evidence"][1]
    assert (item["block"], item["start"], item["quote"]) == (1, None, "Yes .")
    assert suite.notes[2].startswith("1 sentence not found")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("answers", {"sentence_index": [3]}, "sentence 3 of 'p:1' for '1'"),
        ("answers", {"sentence_index": [-1]}, "sentence -1 of 'p:1'"),
        ("answers", {"doc_id": "p:3"}, "passage 'p:3' for '1'; expected one that qrels has"),
    ],
)
def test_build__names_what_does_not_belong(given, name, change, told):
    kinds = given[name].schema
    rows = given[name].with_columns(
        **{key: pl.lit(value, dtype=kinds[key]) for key, value in change.items()}
    )
    with pytest.raises(InputError, match=told):
        clapnq.build({**given, name: rows})


@pytest.mark.parametrize(
    "change",
    [
        {"passages": []},
        {"input": 1, "passages": None},
        {"output": [{"answer": "Hot."}]},
        {"output": [{"answer": "Hot.", "selected_sentences": ["Tea is cold ."]}]},
    ],
)
def test_official__names_the_line_that_is_broken(tmp_path, change):
    rows = [ANSWERABLE[1], ANSWERABLE[0] | change]
    with pytest.raises(InputError, match=r"clapnq_dev_answerable\.jsonl:2: not as published"):
        clapnq.official(folder(tmp_path, rows, UNANSWERABLE))


def test_official__says_which_file_is_missing(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        clapnq.official(folder(tmp_path, ANSWERABLE))
