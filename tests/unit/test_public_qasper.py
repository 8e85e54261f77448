"""The importer of QASPER on a small world: places, annotators, official files, hostile tables."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pytest

import importers
from ragcore import score
from ragcore.errors import InputError, UsageError
from ragcore.public import qasper

PAPER = {
    "title": "Of hedges", "abstract": "Hedges grow.",
    "full_text": [
        {"section_name": None, "paragraphs": ["", "First: a hedge."]},
        {"section_name": "Growth ::: Rate", "paragraphs": ["It grows a metre. Slowly.", "Ends."]},
    ],
    "qas": [],
}  # fmt: skip
TRAIN, TEST = "qasper-train-dev-v0.3.tgz", "qasper-test-and-evaluator-v0.3.tgz"


def answer(by="a1", **said):
    usual = {
        "unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": "",
        "evidence": [], "highlighted_evidence": [],
    }  # fmt: skip
    return {"annotation_id": by, "answer": usual | said}


def asked(name, *answers, question="How?"):
    return {"question_id": name, "question": question, "answers": list(answers)}


QUESTIONS = [
    asked("q1", answer(extractive_spans=["a metre", "slowly"],
                       evidence=["It grows a metre. Slowly.", "FLOAT SELECTED: Table 1"],
                       highlighted_evidence=["It grows a metre."]),
          answer("a2", unanswerable=True, evidence=["Ends."])),
    asked("q2", answer(yes_no=False, evidence=["grows a metre", "Growth ::: Rate", "  "])),
    asked("q3", answer(unanswerable=True)),
    asked("q4", answer(free_form_answer="By itself.", evidence=["nowhere"]), answer("a2")),
]  # fmt: skip


def archives(folder, train=None, dev=None, test=None):
    parts = {TRAIN: {"qasper-train-v0.3.json": train, "qasper-dev-v0.3.json": dev},
             TEST: {"qasper-test-v0.3.json": test}}  # fmt: skip
    for name, members in parts.items():
        raw = {f"release/{member}": json.dumps(said or {}) for member, said in members.items()}
        importers.write_tar(folder / name, {key: text.encode() for key, text in raw.items()})
    return folder


@pytest.fixture
def world(tmp_path):
    paper = PAPER | {"qas": QUESTIONS}
    return qasper.official(archives(tmp_path, {"p1": paper}, {"p2": PAPER}))


def test_official__units_keep_their_numbers_and_blank_ones_go(world):
    assert world["corpus"]["doc_id"].to_list()[:4] == ["p1:a:0", "p1:0:1", "p1:1:0", "p1:1:1"]
    assert world["papers"].rows() == [("p1", "Of hedges", "train"), ("p2", "Of hedges", "dev")]
    found = {(q, m) for q, m in world["evidence"].select("query_id", "match").iter_rows()}
    assert found == {
        ("q1", "exact"), ("q1", "table_or_figure"), ("q1", "substring"), ("q2", "substring"),
        ("q2", "section_heading"), ("q2", "not_found"), ("q4", "not_found"),
    }  # fmt: skip


def test_build__labels_places_and_annotators(world):
    made = qasper.build(world)
    cases = {c["case_id"]: c for c in made.cases.to_pylist()}
    placed = cases["q1"]["evidence"]
    assert [(i["block"], i["start"], i["end"], i["in_snapshot"]) for i in placed] == [
        (2, 29, 54, True), (None, None, None, False), (3, 55, 60, True),
    ]  # fmt: skip
    assert cases["q2"]["evidence"][0]["start"] == 29 + len("It ")
    assert cases["q1"]["annotations"] == [
        {"answer": "a metre, slowly", "evidence": ["p1:1:0", "FLOAT SELECTED: Table 1"]},
        {"answer": "Unanswerable", "evidence": []},
    ]  # fmt: skip
    assert cases["q1"]["references"] == ["a metre, slowly"]
    assert cases["q3"]["references"] == []
    assert [c["type"] for c in cases.values()] == [
        ["extractive"],
        ["yes_no"],
        ["unanswerable"],
        ["free_form"],
    ]
    assert [c["expected_state"] for c in cases.values()] == [
        "answer",
        "answer",
        "abstain",
        "answer",
    ]
    assert {c["split"] for c in cases.values()} == {"development"}
    said = " ".join(made.notes)
    assert "1 empty evidence quote left out" in said
    assert "3 evidence rows of 3 questions" in said
    assert "1 annotation without an answer" in said
    assert "1 highlight" in said


def test_build__counts_a_quote_that_is_not_at_its_place(world):
    moved = world["evidence"].with_columns(
        pl.when(pl.col("quote") == "Ends.").then(pl.lit("Gone.")).otherwise("quote").alias("quote")
    )
    made = qasper.build(world | {"evidence": moved})
    item = made.cases["evidence"].to_pylist()[0][-1]
    assert (item["quote"], item["block"], item["start"]) == ("Gone.", None, None)
    assert any(note.startswith("1 quote not where") for note in made.notes)


def test_build__goes_without_vectors_and_refuses_too_few(world):
    assert "vector" not in qasper.build(world).chunks.column_names
    units = world["corpus"].select("doc_id")
    some = units.with_columns(
        pl.Series("vector", [[1.0, 0.0]] * units.height, pl.Array(pl.Float32, 2))
    )
    made = qasper.build(world | {"vectors_corpus": some})
    assert made.chunks["vector"].to_pylist()[0] == [1.0, 0.0]
    with pytest.raises(InputError, match=r"no vector of 'p2:1:1' \(1 of 8"):
        qasper.build(world | {"vectors_corpus": some.head(7)})


@pytest.mark.parametrize(("start", "end"), [(5, 0), (-25, 0), (2**40, 3), (0, 2**40)])
def test_build__counts_a_place_that_is_none(world, start, end):
    """The end before the start, from behind, or outside: by quote alone."""
    places = {"start_codepoint": start, "end_codepoint": end}
    moved = world["evidence"].with_columns(
        pl.when(pl.col("doc_id").is_not_null()).then(pl.lit(value)).otherwise(None).alias(name)
        for name, value in places.items()
    )
    made = qasper.build(world | {"evidence": moved})
    items = [one for case in made.cases["evidence"].to_pylist() for one in case]
    assert {one["start"] for one in items} == {None}
    assert any("not where the collection places them" in note for note in made.notes)


def test_build__refuses_evidence_of_another_paper(world):
    broken = world["evidence"].with_columns(doc_id=pl.lit("p2:a:0"))
    with pytest.raises(InputError, match="of paper 'p2' for question 'q1'"):
        qasper.build(world | {"evidence": broken})


def test_official__refuses_what_is_not_there_or_not_of_this_form(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        qasper.official(tmp_path)
    archives(tmp_path, {"p1": PAPER | {"qas": [{"question": "?"}]}})
    with pytest.raises(InputError, match="paper 'p1': not as published: KeyError"):
        qasper.official(tmp_path)
    (tmp_path / TEST).write_bytes(b"no archive")
    archives_of = tmp_path / TRAIN
    archives(tmp_path, {"p1": PAPER})
    (tmp_path / TEST).write_bytes(b"no archive")
    with pytest.raises(InputError, match="not as published: ReadError"):
        qasper.official(tmp_path)
    importers.write_tar(archives_of, {})
    with pytest.raises(InputError, match=r"qasper-train-v0\.3\.json: not as published: KeyError"):
        qasper.official(tmp_path)


# --- the measure over a context


def test_evidence_f1__of_a_context_and_of_citations(world, tmp_path):
    folder = importers.write(tmp_path / "suite", qasper.build(world))
    item = pa.struct([("id", pa.string())])
    run = pa.table({
        "case_id": ["q1", "q2", "q3", "q4"],
        "context": pa.array(
            [[{"id": "p1:1:0"}, {"id": "p1:a:0"}, {"id": "p1:1:0"}], [{"id": "p1:a:0"}], [], None],
            pa.list_(item)),
        "citations": pa.array([[{"id": "p1:a:0"}], None, None, None], pa.list_(item)),
    })  # fmt: skip
    names = [
        "qasper.evidence_f1(of=context)", "qasper.evidence_f1", "qasper.evidence_f1(of=citations)",
        "qasper.evidence_f1(of=context,text_only=True)",
    ]  # fmt: skip
    scores = score(run, suite=folder, measures=names)
    assert scores.measures == names
    assert [scores.value(names[0], q) for q in ("q1", "q2", "q3", "q4")] == [0.5, 0.0, 1.0, 0.0]
    assert scores.value(names[3], "q1") == pytest.approx(2 / 3)
    for name in names[1:3]:
        assert [scores.value(name, q) for q in ("q1", "q2")] == [0.0, 0.0]
    counts = scores.audits[0].counts
    assert counts["qasper: questions without predicted evidence"] == 1 + 1 + 3 + 3
    bare = score(run.drop_columns(["citations"]), suite=folder, measures=names[:2])
    assert bare.state(names[1], "q1") == "missing"
    assert bare.value(names[0], "q1") == 0.5
    with pytest.raises(UsageError, match="citations, context"):
        score(run, suite=folder, measures=["qasper.evidence_f1(of=ranked)"])
