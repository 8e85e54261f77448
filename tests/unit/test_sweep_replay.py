"""Replays from a wide run: bit for bit what a search gives; what cannot be replayed says so."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore import schema
from ragcore.errors import InputError
from ragcore.experiments import recording as recordings
from ragcore.experiments import rerank, wide
from ragcore.experiments.pool import chunks_in, of_chunks
from ragcore.experiments.recording import Recording
from ragcore.experiments.replay import replay, run_of
from ragcore.experiments.rerank import load_reranker, scored
from ragcore.experiments.setups import Setup
from ragcore.progress import no_progress
from ragcore.questions import read_questions

DEPTH = 20


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")
    index = ragcore.build_index(folder / "chunks.arrow", folder.parent / "i", hnsw=True)
    return folder, index


def recorded(world, *setups: Setup) -> Recording:
    folder, index = world
    questions = read_questions(folder)
    (need,) = wide.needs(setups).values()
    table = wide.record(index, questions, need, embed=None, name="wide", progress=no_progress)
    chunks = chunks_in(folder)
    assert chunks is not None
    return recordings.read_recording(table, "wide", of_chunks(chunks, index), questions)


def lists(table: pa.Table, column: str) -> list[list[tuple[str, float]]]:
    return [[(item["id"], item.get("score")) for item in one] for one in table[column].to_pylist()]


GRID = list(itertools.product(
    ("bm25", "dense-exact", "hybrid-exact"), (1, 5, 10, 20), ({}, {"dense_exact": 0.4}),
    ((), ("acl",)),
))  # fmt: skip


@pytest.fixture(scope="module")
def wide_runs(world):
    return {
        filters: recorded(world, Setup(candidate_k=DEPTH, filters=filters))
        for filters in ((), ("acl",))
    }


@pytest.mark.parametrize(("strategy", "k", "thresholds", "filters"), GRID)
def test_replay__is_what_a_search_gives_bit_for_bit(
    world, wide_runs, strategy, k, thresholds, filters
):
    setup = Setup(strategy, k, 3, thresholds, filters, weights=(1.0, 0.5), rrf_k=7.0)
    found = ragcore.search(
        world[1], world[0], strategy=strategy, candidate_k=k, context_k=3, filters=filters,
        rrf_k=7.0, weights=(1.0, 0.5) if strategy.startswith("hybrid") else None,
        thresholds=thresholds if strategy != "bm25" else {},
    ).table  # fmt: skip
    part = wide_runs[filters]
    ours = run_of(part, setup, replay(part, setup), {"run": "x"})
    assert lists(ours, "ranked") == lists(found, "ranked")
    for column in ("case_id", "lang", "query", "context", "context_state", "index_generation"):
        assert ours[column].to_pylist() == found[column].to_pylist()
    assert ours["stages"].to_pylist() == found["stages"].to_pylist()
    assert ours.schema.equals(found.schema)


@pytest.mark.parametrize("method", ["combsum", "combmnz"])
def test_replay__of_other_fusions_too(world, wide_runs, method):
    setup = Setup(candidate_k=8, method=method, normalise="z-score")
    found = ragcore.search(
        world[1], world[0], strategy="hybrid-exact", candidate_k=8, method=method,
        normalise="z-score",
    )  # fmt: skip
    ours = run_of(wide_runs[()], setup, replay(wide_runs[()], setup), {"run": "x"})
    assert lists(ours, "ranked") == lists(found.table, "ranked")


def test_needs__share_a_search_where_they_can():
    setups = [
        Setup(candidate_k=5), Setup("bm25", 40), Setup("dense-exact", k1=0.4), Setup(k1=0.4),
        Setup(filters=("acl",), filter_when="after", candidate_k=7), Setup("hybrid", ef=30),
        Setup("dense", ef=30), Setup("dense", ef=60), Setup(filters=("acl",)),
    ]  # fmt: skip
    needs = wide.needs(setups)
    assert {need.depth for own, need in needs.items() if not own.candidate_k} == {40}
    assert [need.depth for own, need in needs.items() if own.candidate_k] == [7]
    homes = [wide.home_of(one, needs) for one in setups]
    assert None not in homes
    assert homes[0] == homes[1] == homes[2]  # dense-exact has no k1: any search serves
    assert homes[5] == homes[6] != homes[7]
    assert len({homes[i] for i in (0, 3, 4, 5, 7, 8)}) == 6


def test_filters_after_the_cut__are_searched_at_their_own_depth(world):
    setup = Setup(filters=("acl",), filter_when="after", candidate_k=6)
    part = recorded(world, setup, replace(setup, context_k=2))
    found = ragcore.search(
        world[1], world[0], strategy="hybrid-exact", candidate_k=6, filters=["acl"],
        filter_when="after",
    )  # fmt: skip
    ours = run_of(part, setup, replay(part, setup), {"run": "x"})
    assert lists(ours, "ranked") == lists(found.table, "ranked")
    assert "another search" in part.lacks(replace(setup, candidate_k=5))


def test_hnsw__is_a_prefix_and_never_a_run_of_its_k(world):
    part = recorded(world, Setup("dense", DEPTH, ef=25))
    assert part.label(Setup("dense", 5, ef=25)) == "prefix-of-depth-20, ef=25"
    assert part.label(Setup("dense", 20, ef=25)) == "prefix-of-depth-20, ef=25"
    assert "too shallow: dense was recorded to depth 20, below candidate_k 40" in part.lacks(
        Setup("dense", 40)
    )
    assert part.lacks(Setup("bm25")) == "the recorded run has no stage bm25"
    whole = lists(run_of(part, Setup("dense", 20), replay(part, Setup("dense", 20)), {}), "ranked")
    head = lists(run_of(part, Setup("dense", 5), replay(part, Setup("dense", 5)), {}), "ranked")
    assert head == [one[:5] for one in whole]


def test_rerank__orders_the_fused_candidates(world, wide_runs):
    setup = Setup("hybrid-exact+reranker", 6, 2, rrf_k=60.0)
    base, reranker = wide_runs[()], load_reranker("python:sweep_world:overlap")
    scores, spent, _ = wide.rerank(base, [setup], reranker, no_progress)
    part = recordings.read_recording(
        wide.extended(base, scores, spent, reranker.name), "wide", base.pool, base.questions
    )
    assert part.manifest["reranker"].startswith("python:sweep_world:overlap ")
    found = replay(part, setup)
    plain = replay(part, replace(setup, strategy="hybrid-exact"))
    texts = part.pool.texts
    for i, question in enumerate(part.questions.texts or []):
        head = plain.final.rows[i][:6].tolist()
        given = dict(
            zip(head, sweep_world.overlap(question, [texts[r] for r in head]), strict=True)
        )
        ids = part.pool.ids
        wanted = sorted(head, key=lambda r: ids[r].as_py(), reverse=True)
        wanted.sort(key=lambda r, given=given: -given[r])
        assert found.final.rows[i].tolist() == wanted
        assert found.final.scores[i].tolist() == [given[r] for r in wanted]
    table = run_of(part, setup, found, {"run": "x"})
    assert all(len(one) == 2 for one in table["context"].to_pylist())
    stages = [dict(one) for one in table["stages"].to_pylist()]
    assert all(list(one) == ["bm25", "dense_exact", "fused", "reranked"] for one in stages)
    timed = [{t["stage"]: t["duration_us"] for t in one} for one in table["timings"].to_pylist()]
    assert all(
        t["end_to_end"] == sum(v for k, v in t.items() if k != "end_to_end") and "reranked" in t
        for t in timed
    )


def test_rerank__a_unit_without_a_score_makes_its_case_missing(world, wide_runs):
    setup = Setup("hybrid-exact+reranker", 6)
    base, reranker = wide_runs[()], load_reranker("python:sweep_world:pairs")
    scores, spent, _ = wide.rerank(base, [setup], reranker, no_progress)
    worst = int(replay(base, Setup(candidate_k=6)).final.rows[2][3])
    kept = scores.rows[2] != worst
    scores.rows[2], scores.scores[2] = scores.rows[2][kept], scores.scores[2][kept]
    part = recordings.read_recording(
        wide.extended(base, scores, spent, "r"), "wide", base.pool, base.questions
    )
    found = replay(part, setup)
    assert found.n_missing == 1
    table = run_of(part, setup, found, {"run": "x"})
    assert [i for i, one in enumerate(table["ranked"].to_pylist()) if one is None] == [2]
    assert table["context"][2].as_py() is None
    assert table["context_state"][2].as_py() is None
    scores = ragcore.score(table, suite=world[0], measures=["R@5", "context.coverage"])
    case = part.questions.case_ids[2]
    assert scores.state("R@5", case) == scores.state("context.coverage", case) == "missing"


def test_rerank__refuses_what_is_no_score():
    class Odd:
        name = "odd"

        def __init__(self, given):
            self.given = given

        def score(self, question, texts):
            return self.given

    for given, said in (([1.0], "shape"), ([1.0, float("nan")], "NaN"), (["a", "b"], "no numbers")):
        with pytest.raises(ragcore.errors.UsageError, match=said):
            scored(Odd(given), "q", ["a", "b"])
    assert scored(Odd(None), "q", [])[0].size == 0
    for spec, said in (
        ("python:sweep_world:nothing", "cannot be loaded"), ("other", "no reranker"),
        ("cross-encoder:nowhere", "no folder"), ("python:sweep_world:TYPES", "not callable"),
    ):  # fmt: skip
        with pytest.raises(ragcore.errors.UsageError, match=said):
            load_reranker(spec)


def test_rerank__a_cross_encoder_is_loaded_from_its_folder_only(tmp_path, monkeypatch):
    class Model:
        def __init__(self, folder, local_files_only):
            assert local_files_only
            self.folder = folder

        def predict(self, pairs, show_progress_bar, convert_to_numpy):
            return np.array([len(text) - len(question) for question, text in pairs], np.float32)

    package = ModuleType("sentence_transformers")
    package.CrossEncoder = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    monkeypatch.setattr(rerank.metadata, "version", lambda name: "9.9")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("1")
    made = load_reranker(f"cross-encoder:{tmp_path / 'model'}")
    assert made.name.startswith("cross-encoder 9.9 model ")
    assert scored(made, "ab", ["abc", "a"])[0].tolist() == [1.0, -1.0]
    (tmp_path / "model" / "weights").write_text("2")
    assert load_reranker(f"cross-encoder:{tmp_path / 'model'}").name != made.name
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ragcore.errors.UsageError, match=r"ragcore\[rerank\]"):
        load_reranker(f"cross-encoder:{tmp_path / 'model'}")


def test_recorded_run__is_read_with_its_depth_and_refused_where_broken(world):
    folder, index = world
    found = ragcore.search(index, folder, strategy="hybrid-exact", candidate_k=12).table
    chunks = chunks_in(folder)
    assert chunks is not None
    pool, questions = of_chunks(chunks), read_questions(folder)
    part = recordings.read_recording(found, "run", pool, questions)
    assert part.depth == {"bm25": 12, "dense_exact": 12}
    half = recordings.read_recording(found.slice(5, 10), "run", pool, questions)
    assert half.questions.case_ids == questions.case_ids[5:15]
    assert "30 of 40 cases are not in the recorded run" in half.notes[0]
    unsaid = found.replace_schema_metadata(None)
    assert recordings.read_recording(unsaid, "run", pool, questions).depth["dense_exact"] == 12
    cut = found.replace_schema_metadata(
        {schema.MANIFEST_KEY: json.dumps({"threshold": {"bm25": 2.0}}).encode()}
    )
    part = recordings.read_recording(cut, "run", pool, questions)
    assert "threshold 2 on bm25" in part.lacks(Setup(candidate_k=5))
    assert part.lacks(Setup(candidate_k=5, thresholds={"bm25": 3.0})) == ""
    for broken, said in (
        (found.drop_columns(["stages"]), "columns case_id and stages"),
        (pa.concat_tables([found, found]), "in rows 1 and 41"),
        (
            found.drop_columns(["case_id"]).append_column(
                "case_id", pa.array([f"x{i}" for i in range(40)])
            ),
            "none of",
        ),
    ):
        with pytest.raises(InputError, match=said):
            recordings.read_recording(broken, "run", pool, questions)
    fewer = of_chunks(chunks)
    fewer.__dict__["documents"] = chunks.documents.slice(3)
    with pytest.raises(InputError, match="of another corpus"):
        recordings.read_recording(found, "run", fewer, questions)


def test_recorded_run__without_timings_has_none(world):
    folder, index = world
    found = ragcore.search(index, folder, strategy="bm25", candidate_k=12).table
    chunks = chunks_in(folder)
    assert chunks is not None
    part = recordings.read_recording(
        found.drop_columns(["timings"]), "run", of_chunks(chunks), read_questions(folder)
    )
    setup = Setup("bm25", 5)
    table = run_of(part, setup, replay(part, setup), {})
    assert "timings" not in table.column_names
    assert "index_generation" not in table.column_names
    assert np.array_equal(
        part.at(np.array([3, 1])).lists["bm25"].rows[1], part.lists["bm25"].rows[1]
    )
