"""Collections in SQuAD's form on small worlds: drifted places, lines, languages, hostile ones."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given as property_of
from hypothesis import strategies as st

from ragcore.errors import InputError
from ragcore.public import cmrc2018, covidqa, squad, xquad

TEXT = "甲在城里。乙也在城里。"


def answers(*rows):
    names = ["query_id", "doc_id", "annotator", "text", "start_codepoint"]
    return pl.DataFrame(rows, schema=names, orient="row")


def documents(*ids):
    return pl.DataFrame({"doc_id": list(ids), "text": [TEXT] * len(ids)})


def in_form(*articles):
    """Articles of (title, paragraphs); a paragraph is (text, more, [(id, question, answers)])."""
    data = [
        {"title": title, "paragraphs": [
            {"context": text, **more, "qas": [
                {"id": key, "question": asked,
                 "answers": [{"text": words, "answer_start": at} for words, at in said]}
                for key, asked, said in questions]}
            for text, more, questions in paragraphs]}
        for title, paragraphs in articles
    ]  # fmt: skip
    return json.dumps({"version": "1", "data": data})


# --- places


def test_nearest__is_the_place_or_the_next_one_to_it():
    assert squad.nearest("ab ab ab", "ab", 3) == (squad.EXACT, 3)
    assert squad.nearest("ab ab ab", "ab", 4) == (squad.MOVED, 3)
    assert squad.nearest("ab ab ab", "ab", 5) == (squad.MOVED, 6)
    assert squad.nearest("ab  ab", "ab", 2) == (squad.MOVED, 0)  # both as near: the first
    assert squad.nearest("ab", "ab", -1) == (squad.MOVED, 0)
    assert squad.nearest("aaa", "aa", 1) == (squad.EXACT, 1)
    assert squad.nearest("ab", "x", 0) == squad.nearest("ab", "", 0) == (squad.LOST, -1)


@property_of(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers(-2, 14))
def test_nearest__is_the_least_distance(text, words, start):
    places = [i for i in range(len(text)) if text[i:].startswith(words)]
    fate, at = squad.nearest(text, words, start)
    if not places:
        assert (fate, at) == (squad.LOST, -1)
    else:
        assert at in places
        assert abs(at - start) == min(abs(i - start) for i in places)
        assert (fate == squad.EXACT) == (start in places)


def test_labels__take_the_first_answer_with_a_place():
    queries = pl.DataFrame({"query_id": ["q1", "q2", "q3"]})
    given = answers(
        ("q1", "d", 0, "在城", -1), ("q1", "d", 1, "城里", 2), ("q2", "d", 0, "没有", 0),
        ("q2", "d", 1, "乙", 6), ("q3", "d", 0, "没有", 0), ("q3", "d", 1, "没有", 0),
        ("other", "d", 0, "甲", 0),
    )  # fmt: skip
    items, references, notes = squad.labels(
        {"answers": given}, queries, documents("d"), known=given["query_id"].unique()
    )
    assert sorted(items.rows()) == [
        ("q1", "d", "城里", 2, 4), ("q2", "d", "乙", 5, 6), ("q3", "d", None, None, None),
    ]  # fmt: skip
    assert references == [["在城", "城里"], ["没有", "乙"], ["没有"]]
    said = " ".join(notes)
    assert "5 answers of 6 not where" in said
    assert "2 are elsewhere in their document, 3 nowhere; 1 label moved" in said
    assert "1 question without an answer that is in the document" in said
    assert "3 further answers" in said


def test_labels__refuse_questions_without_answers():
    queries = pl.DataFrame({"query_id": ["q1", "q2"]})
    with pytest.raises(InputError, match=r"question 'q2', and 0 more"):
        squad.labels({"answers": answers(("q1", "d", 0, "甲", 0))}, queries, documents("d"))


# --- CMRC 2018


@pytest.fixture
def cmrc(tmp_path):
    for split, key in (("dev", "DEV_0"), ("trial", "TRIAL_0")):
        text = in_form(
            ("城", [(TEXT, {"id": key}, [(f"{key}_Q", "谁？", [("乙", 5), ("甲", 9)])])])
        )
        (tmp_path / cmrc2018.FILES[split]).write_text(text, "utf-8")
    return tmp_path


def test_cmrc2018__from_official_files(cmrc):
    made = cmrc2018.build(cmrc2018.official(cmrc))
    cases = made.cases.to_pylist()
    assert [(c["case_id"], c["split"], c["source_split"]) for c in cases] == [
        ("DEV_0_Q", "validation", "dev"), ("TRIAL_0_Q", "development", "trial"),
    ]  # fmt: skip
    item = cases[0]["evidence"][0]
    assert (item["doc_id"], item["quote"], item["start"], item["required"]) == (
        "DEV_0", "乙", 5, True
    )  # fmt: skip
    assert made.chunks["article"].to_pylist() == ["城", "城"]
    assert "title" not in made.chunks.column_names


def test_cmrc2018__names_what_is_broken(cmrc):
    (cmrc / cmrc2018.FILES["trial"]).write_text('{"data": [{"paragraphs": [{}]}]}')
    with pytest.raises(InputError, match="article 1: not as published: KeyError"):
        cmrc2018.official(cmrc)
    (cmrc / cmrc2018.FILES["trial"]).write_text("[]")
    with pytest.raises(InputError, match="TypeError"):
        cmrc2018.official(cmrc)
    (cmrc / cmrc2018.FILES["trial"]).write_text("{")
    with pytest.raises(InputError, match="not as published: JSONDecodeError"):
        cmrc2018.official(cmrc)


# --- XQuAD


@pytest.fixture
def two_languages(tmp_path):
    for lang, text, words in (("en", "One dog. Two cats.", "cats"), ("zh", TEXT, "乙")):
        at = text.index(words)
        asked = [(text, {}, [("k1", "?", [(words, at)])]), (text, {}, [("k2", "?", [(words, at)])])]
        (tmp_path / f"xquad.{lang}.json").write_text(in_form(("Town", asked)), "utf-8")
    return tmp_path


def test_xquad__is_a_case_in_two_languages(two_languages):
    made = xquad.build(xquad.official(two_languages))
    cases = made.cases.to_pylist()
    assert [(c["case_id"], c["lang"]) for c in cases] == [
        ("k1", "en"), ("k2", "en"), ("k1", "zh"), ("k2", "zh"),
    ]  # fmt: skip
    assert [c["evidence"][0]["doc_id"] for c in cases] == ["en:0:0", "en:0:1", "zh:0:0", "zh:0:1"]
    assert made.chunks["parallel_id"].to_pylist() == ["0:0", "0:1"] * 2
    assert made.notes == ()


def test_xquad__counts_languages_left_out_and_questions_in_one(two_languages):
    tables = xquad.official(two_languages)
    queries = tables["queries"].with_columns(
        pl.when(pl.col("query_id") == "zh:k2").then(pl.lit("ar")).otherwise("lang").alias("lang")
    )
    notes = xquad.build(tables | {"queries": queries}).notes
    assert notes == (
        "1 question and 0 paragraphs in ar left out.", "1 question in one of the languages only."
    )  # fmt: skip
    twice = tables["queries"].with_columns(pl.lit("k1").alias("parallel_id"))
    with pytest.raises(InputError, match="queries in en row 2"):
        xquad.build(tables | {"queries": twice})


# --- COVID-QA


ARTICLE = "On cats \n\n First line.\nSecond line.\n \nEnd."


@pytest.fixture
def covid(tmp_path):
    asked = [
        (1, "?", [("line.\nSecond", 17)]), (2, "?", [(" First", 9)]), (3, "?", [("line.", 31)])
    ]  # fmt: skip
    text = in_form(("", [(ARTICLE, {"document_id": 7}, asked)]))
    (tmp_path / covidqa.FILE).write_text(text, "utf-8")
    return tmp_path


def test_covidqa__cuts_answers_at_lines(covid):
    tables = covidqa.official(covid)
    assert tables["documents"]["title"].to_list() == ["On cats"]
    assert tables["units"].select("unit_id", "start_codepoint", "text").rows() == [
        ("7:0", 0, "On cats "), ("7:1", 10, " First line."), ("7:2", 23, "Second line."),
        ("7:3", 38, "End."),
    ]  # fmt: skip
    made = covidqa.build(tables)
    cases = {c["case_id"]: c for c in made.cases.to_pylist()}
    placed = {k: [(i["quote"], i["start"], i["end"]) for i in c["evidence"]]
              for k, c in cases.items()}  # fmt: skip
    assert placed == {
        "7:1": [("line.", 17, 22), ("Second", 23, 29)], "7:2": [(" First", 10, 16)],
        "7:3": [("line.", 30, 35)],
    }  # fmt: skip
    assert {c["doc_id"] for c in cases.values()} == {"7"}
    assert "2 answers of 3 not where" in made.notes[0]
    assert made.notes[1] == "1 answer over several lines: 4 items of 3 labels."


def test_covidqa__keeps_labels_without_a_place(covid):
    tables = covidqa.official(covid)
    gone = tables["answers"].with_columns(pl.lit("nowhere").alias("text"))
    made = covidqa.build(tables | {"answers": gone})
    assert [len(e) for e in made.cases["evidence"].to_pylist()] == [1, 1, 1]
    assert made.cases["evidence"][0].as_py()[0]["quote"] is None
    assert "3 questions without an answer" in made.notes[1]
