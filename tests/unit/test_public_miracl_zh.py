"""The importer of MIRACL in Chinese on a small world: what stays, official files, hostile ones."""

from __future__ import annotations

import json

import polars as pl
import pytest

from ragcore.errors import InputError
from ragcore.public import miracl_zh, nomiracl_zh

TOPICS = {"dev": [("1#0", "甲？"), ("2#0", "乙？")], "train": [("3#0", "丙？")]}
QRELS = {"dev": [("1#0", "7#1", 1), ("1#0", "7#2", 0), ("2#0", "9#9", 1)],
         "train": [("3#0", "7#2", 0), ("3#0", "8#0", 1), ("3#0", "9#9", 1)]}  # fmt: skip
SHOWN = [
    [("7#1", "甲: 一: 二"), ("7#2", "甲: [2] 乙\n\n丙")],
    [("8#0", "丁: 戊"), ("7#1", "甲: 己")],
]


def prompt(passages):
    texts = "\n\n".join(f"[{n}] {text}" for n, (_, text) in enumerate(passages, 1))
    return {
        "query_id": "1#0",
        "results": {},
        "docids": [name for name, _ in passages],
        "prompt": f"Read.\n\nQUESTION:\n?\n\nCONTEXTS:\n{texts}\n\nOUTPUT:\n",
    }


@pytest.fixture
def folder(tmp_path):
    for split in TOPICS:
        judged = [(q, "Q0", d, g) for q, d, g in QRELS[split]]
        for kind, rows in ((miracl_zh.TOPICS, TOPICS[split]), (miracl_zh.QRELS, judged)):
            lines = ["\t".join(map(str, row)) for row in rows]
            (tmp_path / kind.format(split)).write_text("\n".join(lines) + "\n", "utf-8")
    for name, passages in zip(nomiracl_zh.FILES.values(), SHOWN, strict=True):
        (tmp_path / name).write_text(json.dumps(prompt(passages)) + "\n\n", "utf-8")
    return tmp_path


def test_official__parts_prompts_and_names_second_texts(folder):
    passages = miracl_zh.official(folder)["nomiracl_zh/corpus"]
    assert passages.drop("lang", "source_doc_id").rows() == [
        ("zh:7#1", "甲", "一: 二"), ("zh:7#2", "甲", "[2] 乙\n\n丙"), ("zh:8#0", "丁", "戊"),
        ("zh:7#1@ee2a38", "甲", "己"),
    ]  # fmt: skip


def test_build__keeps_topics_with_a_relevant_passage_and_counts_the_rest(folder):
    made = miracl_zh.build(miracl_zh.official(folder))
    cases = {c["case_id"]: c for c in made.cases.to_pylist()}
    assert list(cases) == ["1#0", "3#0"]
    assert [(i["doc_id"], i["relevance"], i["required"]) for i in cases["3#0"]["evidence"]] == [
        ("7#2", 0, None), ("8#0", 1, None),
    ]  # fmt: skip
    assert [c["split"] for c in cases.values()] == ["validation", "development"]
    assert made.chunks["chunk_id"].to_pylist() == ["7#1", "7#2", "8#0", "7#1@ee2a38"]
    assert made.chunks["article"].to_pylist() == ["7", "7", "8", "7"]
    assert [note.split(" left out")[0] for note in made.notes[:2]] == [
        "1 topic of 3", "2 judgements of 6",
    ]  # fmt: skip
    assert made.notes[2].startswith("1 relevant passage of the topics that are left")


def test_build__refuses_judgements_of_nothing_that_is_here(folder):
    tables = miracl_zh.official(folder)
    none = tables["miracl_zh/qrels"].with_columns(pl.lit("zz").alias("doc_id"))
    with pytest.raises(InputError, match="no relevant passage"):
        miracl_zh.build(tables | {"miracl_zh/qrels": none})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (miracl_zh.TOPICS.format("dev"), "1#0 甲\n", "1 fields; expected 2 fields a line"),
        (miracl_zh.QRELS.format("train"), "3#0\tQ0\t8#0\t2\n", "grade '2'"),
        (nomiracl_zh.FILES["r"], "{}", "KeyError"),
        (nomiracl_zh.FILES["n"], "no json", "a JSON value a line"),
        (nomiracl_zh.FILES["n"], json.dumps({"docids": ["1"], "prompt": "CONTEXTS"}), "a prompt"),
    ],
)  # fmt: skip
def test_official__refuses_lines_of_another_form(folder, name, text, said):
    (folder / name).write_text(text, "utf-8")
    with pytest.raises(InputError, match=said) as caught:
        miracl_zh.official(folder)
    assert caught.value.line == 1


def test_official__refuses_files_that_are_not_there_or_no_text(folder):
    (folder / nomiracl_zh.FILES["r"]).write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        miracl_zh.official(folder)
    (folder / nomiracl_zh.FILES["r"]).unlink()
    with pytest.raises(InputError, match="no such file"):
        miracl_zh.official(folder)
