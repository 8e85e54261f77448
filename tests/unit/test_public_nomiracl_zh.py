"""The importer of NoMIRACL: prompts taken apart, answers read, what does not belong."""

from __future__ import annotations

import json

import polars as pl
import pytest

from ragcore.errors import InputError
from ragcore.public import nomiracl_zh as importer

YES, NO = "Yes, answer is present.", "I don’t know"


def prompt(question, *texts):
    passages = "\n\n".join(f"[{i}] {text}" for i, text in enumerate(texts, 1))
    return f"Read.\n\nQUESTION:\n{question}\n\nCONTEXTS:\n{passages}\n\nOUTPUT:\n"


ROWS = {
    "r": [{"query_id": "1#0", "docids": ["5#0", "5#1"], "results": {"b": YES, "a": NO},
           "prompt": prompt("Who?", "One: a [2] b\n\nc: d", "Two: e")}],
    "n": [{"query_id": "1#0", "docids": ["5#1", "6#0"], "results": {"a": f"{YES} {NO}"},
           "prompt": prompt("Where?", "Two: another", "no title")}],
}  # fmt: skip


def folder(path, rows=ROWS):
    for half, own in rows.items():
        text = "".join(json.dumps(one) + "\n" for one in own)
        (path / importer.FILES[half]).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def given(tmp_path):
    return importer.official(folder(tmp_path))


def test_official__takes_prompts_apart(given):
    assert given["queries"]["query_id"].to_list() == ["zh:r:1#0", "zh:n:1#0"]
    assert given["queries"]["text"].to_list() == ["Who?", "Where?"]
    assert given["queries"]["answerable"].to_list() == [True, False]
    texts = given["corpus"].select("title", "text").rows()
    assert texts == [("One", "a [2] b\n\nc: d"), ("Two", "e"), ("Two", "another"), ("no title", "")]


def test_official__an_id_with_two_texts_is_two_passages(given):
    ids = given["corpus"]["doc_id"].to_list()
    assert ids[:2] == ["zh:5#0", "zh:5#1"]
    assert ids[2].startswith("zh:5#1@")
    assert len(set(ids)) == 4
    assert given["candidates"]["doc_id"].to_list() == [*ids[:2], *ids[2:]]


@pytest.mark.parametrize(
    ("response", "state"),
    [
        ("Yes, answer is present in [1].", "answer"),
        ("YES, ANSWER IS PRESENT", "answer"),
        ("I don't know.", "abstain"),
        ("I DON’T KNOW", "abstain"),
        (f"{YES} {NO}", None),
        ("", None),
        ("The answer is present", None),
        ("589年", None),
    ],
)
def test_state__is_one_of_two_answers_or_none(response, state):
    assert importer.state_of(response) == state


def test_build__an_invalid_answer_is_an_error_and_counted(given):
    suite = importer.build(given)
    assert list(suite.runs) == ["a", "b"]
    first, second = suite.runs["a"].to_pylist()
    assert (first["proposed"]["state"], first["error"]) == ("abstain", None)
    assert (second["proposed"]["state"], second["error"]) == (None, "invalid output")
    assert second["proposed"]["text"] == f"{YES} {NO}"
    assert [one["id"] for one in first["context"]] == ["zh:5#0", "zh:5#1"]
    assert suite.notes[0].startswith("1 answer of 4 are neither")
    assert suite.notes[1] == "1 answer not recorded"
    assert suite.runs["b"].num_rows == 1


def test_build__names_a_system_that_answers_twice(given):
    rows = given["responses"].with_columns(system=pl.lit("a"))
    with pytest.raises(InputError, match="responses of a row 2: query_id 'zh:r:1#0' again"):
        importer.build({**given, "responses": rows})


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "Who?"},
        {"prompt": prompt("Who?", "One: a")},
        {"prompt": None},
        {"results": None},
        {"docids": ["5#0", "5#1", "5#2"]},
    ],
)
def test_official__names_the_line_that_is_broken(tmp_path, change):
    rows = {**ROWS, "r": [ROWS["r"][0], ROWS["r"][0] | change]}
    with pytest.raises(InputError, match=r"relevant-zh\.jsonl:2: not as published"):
        importer.official(folder(tmp_path, rows))


def test_official__says_which_file_is_missing(tmp_path):
    with pytest.raises(InputError, match=r"non_relevant-zh\.jsonl: no such file"):
        importer.official(folder(tmp_path, {"r": ROWS["r"]}))
