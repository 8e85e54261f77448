"""The importer of SciFact: labels, verdicts, and what it does not take."""

from __future__ import annotations

import json
import zipfile

import pytest

from ragcore.errors import InputError
from ragcore.public import scifact

CORPUS = [{"_id": "7", "title": "Zinc", "text": "Zinc helps.\u2028It does."},
          {"_id": "8", "title": "Salt", "text": ""}]  # fmt: skip
QUERIES = [
    {"_id": "1", "text": "Zinc helps.",
     "metadata": {"7": [{"sentences": [0], "label": "SUPPORT"},
                        {"sentences": [1, 2], "label": "SUPPORT"}]}},
    {"_id": "2", "text": "Salt helps.", "metadata": {}},
    {"_id": "3", "text": "Zinc harms.",
     "metadata": {"7": [{"sentences": [0], "label": "CONTRADICT"}]}},
]  # fmt: skip
HEAD = "query-id\tcorpus-id\tscore"


def archive(folder, **changed):
    parts = {
        "corpus.jsonl": "\n".join(json.dumps(one, ensure_ascii=False) for one in CORPUS),
        "queries.jsonl": "\n".join(map(json.dumps, QUERIES)) + "\n",
        "qrels/train.tsv": f"{HEAD}\n3\t7\t1\n",
        "qrels/test.tsv": f"{HEAD}\r\n1\t7\t1\r\n2\t8\t1\r\n",
    } | changed  # fmt: skip
    with zipfile.ZipFile(folder / "scifact.zip", "w") as made:
        for name, text in parts.items():
            if text is not None:
                made.writestr(f"scifact/{name}", text)
    return folder


@pytest.fixture
def given(tmp_path):
    return scifact.official(archive(tmp_path))


def test_official__is_what_the_archive_says(given):
    assert given["corpus"]["doc_id"].to_list() == ["7", "8"]
    assert given["corpus"]["text"][0].endswith("It does.")
    assert given["queries"]["verdict"].to_list() == ["SUPPORT", "NOT_ENOUGH_INFO", "CONTRADICT"]
    assert given["queries"]["split"].to_list() == ["test", "test", "train"]
    assert given["claims"]["sentences"].to_list() == [[0], [1, 2], [0]]


def test_build__takes_the_test_claims_and_counts_the_others(given):
    suite = scifact.build(given)
    rows = suite.cases.to_pylist()
    assert [row["case_id"] for row in rows] == ["1", "2"]
    assert [row["expected_state"] for row in rows] == ["answer", "abstain"]
    assert [[item["doc_id"] for item in row["evidence"]] for row in rows] == [["7"], ["8"]]
    assert suite.notes[0].startswith(
        "1 claim of the training half with 1 judgement and 1 rationale"
    )
    assert suite.notes[1].startswith("2 rationales")
    assert suite.chunks is not None
    assert suite.chunks["chunk_id"].to_pylist() == ["7", "8"]


def test_build__a_verdict_is_of_a_claim_and_an_abstract(given):
    (row,) = scifact.build(given).judgments["annotators"].to_pylist()
    assert row["verdict"] == "yes"
    assert row["evidence"] == ["7"]
    assert row["rationale"] == "sentences 0 or 1,2"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"queries.jsonl": None}, "not as published: KeyError"),
        (
            {"corpus.jsonl": '{"_id": "1", "title": "", "text": ""}\n{"_id"'},
            "jsonl:2: not",
        ),
        ({"qrels/test.tsv": f"{HEAD}\n1\t7\n"}, r"test\.tsv:2: 2 fields"),
        ({"qrels/test.tsv": f"{HEAD}\n1\t7\tone\n"}, r"test\.tsv:2: not as published"),
    ],
)
def test_official__names_what_is_broken(tmp_path, changed, told):
    with pytest.raises(InputError, match=told):
        scifact.official(archive(tmp_path, **changed))


def test_official__says_that_the_archive_is_missing(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        scifact.official(tmp_path)
    (tmp_path / "scifact.zip").write_bytes(b"none")
    with pytest.raises(InputError, match="not as published: BadZipFile"):
        scifact.official(tmp_path)
