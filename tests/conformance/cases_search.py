"""Cases about BM25 and about tantivy: run through index and search, as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

import indexes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.analysis import Analyzer
from ragcore.index.change import change
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import Index, open_index
from ragcore.vocabulary import audit


def found(index: Index, question: str, **settings: object) -> dict[str, float]:
    """Ids and scores for one question, best first."""
    return dict(indexes.ranked(index, indexes.ask({"q": question}), **settings)["q"])


@handles("RC-068", "RC-074")
def scores_are_the_formula(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    parameters = {"k1": given["k1"], "b": given["b"]}
    index = indexes.make(folder / "i", given["corpus"], **parameters)
    for settings in ({}, {"lengths": "tantivy"}, {**parameters, "timing": "batch"}):
        scores = found(index, given["query"], **settings)
        assert scores == pytest.approx(expected["scores"], abs=case["tolerance"])
        assert len(scores) == expected.get("hits", len(scores))


@handles("RC-070")
def fewer_than_k(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    index = indexes.make(folder / "i", given["corpus"])
    scores = found(index, given["query"], candidate_k=given["k"])
    assert len(scores) == expected["n"]
    assert sorted(scores) == sorted(expected["hits"])


@handles("RC-071")
def nothing_is_legal(case: Case, folder: Path) -> None:
    for number, (given, hits) in enumerate(
        zip(case["input"]["cases"], case["expected"]["hits"], strict=True)
    ):
        index = indexes.make(folder / str(number), given["corpus"])
        assert list(found(index, given.get("query", "x"))) == hits


@handles("RC-072")
def chinese_is_cut_or_said_to_be_lost(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    index = indexes.make(folder / "i", given["corpus"])
    assert sorted(found(index, given["query"])) == sorted(expected["hits_as_set"])
    whole = indexes.make(folder / "whole", given["corpus"], analyzer=Analyzer("none"))
    assert found(whole, given["query"]) == {}
    known = whole.dictionary
    lines = audit([given["query"]], Analyzer("none"), lambda terms: known.codes(terms) >= 0).lines()
    wanted = expected["with_default_analyzer"].removeprefix("warning: ")
    assert lines[0].startswith(wanted)
    assert "100% of questions find nothing (1 of 1)" in lines[1]


@handles("RC-073", "RC-080")
def text_is_normalised_and_long_tokens_are_kept(case: Case, folder: Path) -> None:
    given = case["input"]
    index = indexes.make(folder / "i", given["corpus"])
    assert list(found(index, given["query"])) == case["expected"].get("hits", ["d1"])


@handles("RC-075")
def questions_are_never_syntax(case: Case, folder: Path) -> None:
    given = case["input"]
    index = indexes.make(folder / "i", given["corpus"])
    for question in given["queries"]:
        assert list(found(index, question)) == case["expected"]["hits"], question


@handles("RC-077")
def statistics_are_of_live_chunks(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    texts = dict(row.split(": ") for row in given["index"])
    indexes.make(folder / "i", texts)
    change(folder / "i", None, given["delete"])
    index = open_index(folder / "i")
    scores = found(index, given["query"])
    assert list(scores) == expected["hits"]
    assert scores["d7"] == pytest.approx(expected["score"]["live"], abs=case["tolerance"])
    assert index.manifest["lexical"]["statistics"] == "live chunks"
    rest = {name: text for name, text in texts.items() if name not in given["delete"]}
    assert found(indexes.make(folder / "rebuilt", rest), given["query"]) == scores


@handles("RC-078")
def lengths_are_exact_or_as_tantivy_stores_them(case: Case, folder: Path) -> None:
    texts = {
        f"n{length}": " ".join(["alpha", *(f"w{length}x{i}" for i in range(length - 1))])
        for length in range(40, 49)
    }
    index = indexes.make(folder / "i", texts)
    stored = found(index, "alpha", lengths="tantivy")
    for a, b in case["expected"]["ties_at_lengths"]:
        assert stored[f"n{a}"] == stored[f"n{b}"]
        assert list(stored).index(f"n{b}") < list(stored).index(f"n{a}")  # ties by id, descending
    exact = found(index, "alpha")
    assert len(set(exact.values())) == len(texts)
    assert list(exact) == sorted(texts)


@handles("RC-079")
def ties_do_not_depend_on_segments(case: Case, folder: Path) -> None:
    given = case["input"]
    indexes.make(folder / "one", given["corpus"])
    first, *rest = given["corpus"].items()
    indexes.make(folder / "many", dict([first]))
    for name, text in rest:
        change(folder / "many", read_chunks(indexes.chunk_table({name: text})), [])
    for path in ("one", "many"):
        index = open_index(folder / path)
        scores = found(index, given["query"], candidate_k=given["k"])
        assert list(scores) == ["d", "c"], path
