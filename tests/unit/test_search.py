"""Searching: channels, fusion, the one cut, filters, thresholds, what is recorded."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import indexes
import ragcore
from ragcore import schema
from ragcore.errors import InputError, UsageError
from ragcore.filters import Filter
from ragcore.questions import read_questions, vectors_by_id
from ragcore.search import search
from ragcore.search_settings import STRATEGIES, Settings

TEXTS = {
    "d1": "red fox", "d2": "red hen and red fox", "d3": "blue hen", "d4": "green owl",
    "d5": "red", "d6": "hen",
}  # fmt: skip
VECTORS = {
    "d1": [1.0, 0.0], "d2": [0.8, 0.6], "d3": [0.0, 1.0], "d4": [-1.0, 0.0], "d5": [0.6, 0.8],
    "d6": [0.8, 0.6],
}  # fmt: skip
QUESTIONS = {"q1": "red fox", "q2": "hen?", "q3": "zebra"}
ASKED = {"q1": [1.0, 0.1], "q2": [0.0, 1.0], "q3": [-1.0, 0.0]}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    columns = {
        "topic": ["a", "a", "b", "b", None, "a"],
        "valid_from": pa.array([date(2024, 1, 1), None, None, None, None, None]),
        "valid_until": pa.array([None, date(2024, 6, 1), None, None, None, None]),
        "acl": [["eu"], None, ["us", "eu"], [], None, None],
        "public": [True, False, None, True, True, True],
        "shard": pa.array(["s1", "s2", "s1", "s2", "s1", "s2"]).dictionary_encode(),
        "n_tokens": pa.array([2, 5, 2, 2, 1, 1], pa.int32()),
    }
    return indexes.make(
        tmp_path_factory.mktemp("search") / "i", TEXTS, VECTORS, columns=columns, metric="cosine"
    )


def bm25(question, doc):
    """The formula, in plain Python, over `TEXTS`."""
    tokens = {name: text.split() for name, text in TEXTS.items()}
    average = sum(map(len, tokens.values())) / len(tokens)
    total = 0.0
    for term in dict.fromkeys(question.split()):
        df = sum(term in words for words in tokens.values())
        tf = tokens[doc].count(term)
        if tf:
            norm = 1.2 * (0.25 + 0.75 * len(tokens[doc]) / average)
            total += math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + norm)
    return total


def test_search__bm25_is_the_formula(index):
    found = indexes.ranked(index, indexes.ask(QUESTIONS))
    for case, question in (("q1", "red fox"), ("q2", "hen")):
        expected = {doc: s for doc in TEXTS if (s := bm25(question, doc)) > 0}
        assert dict(found[case]) == pytest.approx(expected, rel=1e-6)
        order = sorted(found[case], key=lambda item: item[0], reverse=True)
        assert found[case] == sorted(order, key=lambda item: -item[1])
    assert found["q3"] == []


def test_search__dense_orders_by_cosine_then_id_descending(index):
    questions = indexes.ask(vectors=ASKED)
    for strategy in ("dense-exact", "dense"):
        found = indexes.ranked(index, questions, strategy=strategy, ef=50)
        for case, asked in ASKED.items():
            expected = {
                doc: np.dot(asked, v) / np.linalg.norm(asked) / np.linalg.norm(v)
                for doc, v in VECTORS.items()
            }
            assert dict(found[case]) == pytest.approx(expected, abs=1e-7)
        assert [doc for doc, _ in found["q1"]] == ["d1", "d6", "d2", "d5", "d3", "d4"]


def test_search__hybrid_fuses_whole_lists_and_cuts_once(index):
    questions = indexes.ask(QUESTIONS, ASKED)
    settings = Settings("hybrid", candidate_k=4, context_k=2, rrf_k=10)
    for timing in ("each", "batch"):
        table = search(index, questions, Settings(**vars(settings) | {"timing": timing})).table
        for row in table.to_pylist():
            lists = {
                name: [item["id"] for item in items] for name, items in dict(row["stages"]).items()
            }
            scores = {}
            for channel in ("bm25", "dense"):
                for rank, doc in enumerate(lists[channel], 1):
                    scores[doc] = scores.get(doc, 0.0) + 1 / (10 + rank)
            fused = {item["id"]: item["score"] for item in row["ranked"]}
            assert fused == pytest.approx(scores, abs=1e-15)
            assert lists["fused"] == list(fused)
            assert [c["id"] for c in row["context"]] == list(fused)[:2]
            assert len(lists["dense"]) == 4
        assert search(index, questions, settings).table["ranked"] == table["ranked"]


def test_search__thresholds_cut_a_channel_before_fusion(index):
    questions = indexes.ask(QUESTIONS, ASKED)
    found = search(
        index, questions, Settings("hybrid-exact", thresholds={"dense_exact": 0.99})
    ).table.to_pylist()
    kept = [[i["id"] for i in dict(row["stages"])["dense_exact"]] for row in found]
    assert kept == [["d1"], ["d3"], ["d4"]]
    assert [i["id"] for i in found[2]["ranked"]] == ["d4"]
    none = indexes.ranked(index, questions, strategy="dense-exact", thresholds={"dense_exact": 2.0})
    assert list(none.values()) == [[], [], []]


# --- filters


def case_table(**columns):
    return indexes.ask(QUESTIONS, ASKED, **columns)


@pytest.mark.parametrize("timing", ["each", "batch"])
@pytest.mark.parametrize("strategy", list(STRATEGIES))
@pytest.mark.parametrize(
    ("filters", "columns", "allowed"),
    [
        (["topic=a"], {}, [{"d1", "d2", "d6"}] * 3),
        (["topic"], {"topic": ["a", "b", None]}, [{"d1", "d2", "d6"}, {"d3", "d4"}, set(TEXTS)]),
        (["public=true"], {}, [{"d1", "d4", "d5", "d6"}] * 3),
        (["shard=s2"], {}, [{"d2", "d4", "d6"}] * 3),
        (
            ["valid_at"],
            {"as_of": pa.array([date(2023, 1, 1), date(2024, 6, 1), date(2024, 5, 31)])},
            [set(TEXTS) - {"d1"}, set(TEXTS) - {"d2"}, set(TEXTS)],
        ),
        (
            ["acl"], {"principals": [["eu"], ["us"], None]},
            [set(TEXTS) - {"d4"}, set(TEXTS) - {"d4", "d1"}, {"d2", "d5", "d6"}],
        ),
        (["topic=a", "shard=s1"], {}, [{"d1"}] * 3),
        (["topic=zz"], {}, [set()] * 3),
    ],
)  # fmt: skip
def test_filters__choose_candidates_and_leave_scores(
    index, filters, columns, allowed, strategy, timing
):
    questions = case_table(**columns)
    chosen = tuple(Filter.parse(f) for f in filters)
    base = {"strategy": strategy, "timing": timing}
    whole = indexes.ranked(index, questions, **base)
    for when in ("before", "after"):
        found = indexes.ranked(index, questions, filters=chosen, filter_when=when, **base)
        for case, eligible in zip(QUESTIONS, allowed, strict=True):
            expected = [item for item in whole[case] if item[0] in eligible]
            if "hybrid" in strategy:  # ranks close up under a filter, scores of channels do not
                assert {d for d, _ in found[case]} == {d for d, _ in expected}
            else:
                assert found[case] == expected


def test_filters__before_gives_candidates_that_after_loses(index):
    questions = case_table()
    chosen = (Filter.parse("topic=b"),)
    for strategy in ("bm25", "dense", "dense-exact"):
        common = {"strategy": strategy, "candidate_k": 1, "filters": chosen}
        before = indexes.names(indexes.ranked(index, questions, **common))
        after = indexes.names(indexes.ranked(index, questions, filter_when="after", **common))
        assert before["q2"] == ["d3"]
        assert after["q1"] == []


def test_filters__that_cannot_be_applied_are_refused(index):
    questions = case_table(topic=["a", "b", None])
    for text, said in (
        ("colour=red", "no column colour"), ("valid_at", "no column as_of"),
        ("acl", "no column principals"), ("shard", "say shard=VALUE"), ("=x", "not understood"),
        ("acl=eu", "not understood"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            search(index, questions, Settings(filters=(Filter.parse(text),)))


def test_filters__what_they_do_not_restrict_is_noted(index):
    questions = case_table(topic=["a", None, None], principals=[["eu"], None, None])
    chosen = (Filter.parse("topic"), Filter.parse("acl"))
    notes = search(index, questions, Settings(filters=chosen)).notes
    assert "filter topic: 2 of 3 cases have no topic: not restricted" in notes
    assert "filter acl: 2 of 3 cases have no principals: public chunks only" in notes
    assert "filter topic: 1 of 6 chunks have no value: not eligible" in notes


# --- what is recorded


def test_search__records_what_it_did(index):
    ticks = iter(range(0, 10**9, 1_000_000))
    found = search(
        index, indexes.ask(QUESTIONS, ASKED), Settings("hybrid", 3, 2, ef=17), name="mine",
        clock=lambda: next(ticks),
    )  # fmt: skip
    table = found.table
    for name in table.column_names:
        assert table.schema.field(name) == schema.RUNS.field(name)
    table.validate(full=True)
    row = table.to_pylist()[0]
    spent = {t["stage"]: t["duration_us"] for t in row["timings"]}
    assert spent == {
        "analyse": 1000, "bm25": 1000, "dense": 1000, "fused": 333, "end_to_end": 3333
    }  # fmt: skip
    assert dict(row["stages"])["bm25"][0]["shard"] in ("s1", "s2")
    assert row["context"][0]["n_tokens"] == 2
    assert table["context_state"].to_pylist() == ["ready"] * 3
    manifest = json.loads(table.schema.metadata[schema.MANIFEST_KEY])
    assert (manifest["run"], manifest["candidate_k"], manifest["context_k"]) == ("mine", 3, 2)
    assert manifest["index"]["generation"] == index.generation
    assert manifest["ann"] == {"ef_search": 17, "M": 16, "ef_construction": 200}
    assert manifest["bm25"]["analyzer"].startswith("words:1+nfkc")
    assert set(table["index_generation"].to_pylist()) == {index.generation}
    assert "bm25: 1 of 3 questions have no result" in found.notes
    assert any(note.startswith("bm25 and dense agree: Jaccard") for note in found.notes)


def test_search__narrow_fusion_is_said(index):
    questions = indexes.ask(QUESTIONS, ASKED)
    narrow = search(index, questions, Settings("hybrid", candidate_k=2, context_k=2)).notes
    wide = search(index, questions, Settings("hybrid", candidate_k=3, context_k=2)).notes
    assert [n for n in narrow if "narrow fusion" in n]
    assert [n for n in wide if "narrow fusion" in n] == []


def test_search__is_read_by_score(index):
    table = search(index, indexes.ask(QUESTIONS), Settings()).table
    scores = ragcore.score(table, qrels={"q1": {"d1": 1}, "q2": {"d3": 1}}, measures=["RR", "R@5"])
    assert scores.mean("R@5") == 1.0
    assert scores.value("RR", "q1") == 1.0


def test_search__no_questions_and_a_language_each(index):
    kind = pa.schema([("case_id", pa.string()), ("question", pa.string())])
    none = search(index, read_questions(kind.empty_table()), Settings("bm25"))
    assert none.table.num_rows == 0
    two = read_questions(pa.table({
        "case_id": ["q", "q"], "lang": ["en", "zh"], "question": ["red fox", "狐狸"]
    }))  # fmt: skip
    table = search(index, two, Settings()).table
    assert table["lang"].to_pylist() == ["en", "zh"]
    assert [len(r) for r in table["ranked"].to_pylist()] == [3, 0]


@pytest.mark.parametrize("text", ["", "???", "-red", "what: red", "C++ (red", "red AND", '"red'])
def test_search__a_question_is_text_never_syntax(index, text):
    found = indexes.names(indexes.ranked(index, indexes.ask({"q": text})))
    assert set(found["q"]) == ({"d1", "d2", "d5"} if "red" in text else set())


def test_search__repeats_count_on_request(index):
    asked = indexes.ask({"q": "red red hen", "p": "red hen"})
    once = indexes.ranked(index, asked)
    assert once["q"] == once["p"]
    twice = indexes.ranked(index, asked, count_repeats=True)
    assert twice["p"] == once["p"]
    red, hen = bm25("red", "d2"), bm25("hen", "d2")
    assert dict(twice["q"])["d2"] == pytest.approx(2 * red + hen, rel=1e-6)


def test_search__batches_threads_and_order_change_nothing(tmp_path):
    rng = np.random.default_rng(3)
    vectors = {f"n{i:03}": rng.normal(size=6) for i in range(150)}
    texts = {
        name: " ".join(f"w{w}" for w in rng.zipf(1.5, 12) if w < 50) for name in vectors
    }  # fmt: skip
    index = indexes.make(tmp_path / "i", texts, vectors)
    asked = {f"q{i}": " ".join(f"w{w}" for w in rng.zipf(1.5, 4) if w < 50) for i in range(20)}
    points = {name: rng.normal(size=6) for name in asked}
    questions = indexes.ask(asked, points)
    turned = indexes.ask(dict(reversed(asked.items())), points)
    for strategy in STRATEGIES:
        base = indexes.ranked(index, questions, strategy=strategy)
        for other in ({"timing": "batch"}, {"timing": "batch", "threads": 2}, {"threads": 2}):
            assert indexes.ranked(index, questions, strategy=strategy, **other) == base
        assert indexes.ranked(index, turned, strategy=strategy) == base


def test_search__a_filter_that_leaves_little_of_a_graph_is_completed_exactly(tmp_path):
    rng = np.random.default_rng(4)
    vectors = {f"n{i:04}": rng.normal(size=6) for i in range(2_000)}
    rare = [i % 100 == 0 for i in range(2_000)]
    index = indexes.make(tmp_path / "i", vectors=vectors, columns={"rare": rare})
    points = rng.normal(size=(2, 6)).astype(np.float32)
    points[1] = math.nan
    asked = indexes.ask(vectors={"q": points[0], "bad": points[0]})
    questions = dataclasses.replace(asked, vectors=points)
    settings = {"filters": (Filter.parse("rare=true"),), "candidate_k": 15}
    exact = indexes.ranked(index, questions, strategy="dense-exact", **settings)
    found = search(index, questions, Settings("dense", **settings))
    rows = {r["case_id"]: [i["id"] for i in r["ranked"]] for r in found.table.to_pylist()}
    assert rows == indexes.names(exact)
    assert [len(v) for v in rows.values()] == [15, 0]
    assert any("answered by brute force" in note for note in found.notes)
    assert "dense: 1 of 2 questions have a vector that is not finite" in found.notes


# --- bad input


def test_search__settings_are_refused_before_any_work(index):
    questions = indexes.ask(QUESTIONS)
    for settings, said in (
        (Settings("sparse"), "unknown strategy"),
        (Settings(candidate_k=0), "candidate-k is 0"),
        (Settings(context_k=0), "context-k is 0"),
        (Settings(thresholds={"dense": 1.0}), "which bm25 does not have"),
        (Settings(filter_when="never"), "before or after"),
        (Settings(k1=-1.0), "bm25: "),
        (Settings("dense"), "no column vector"),
    ):
        with pytest.raises(UsageError, match=said):
            search(index, questions, settings)
    with pytest.raises(UsageError, match="no column question"):
        search(index, indexes.ask(vectors=ASKED), Settings())
    with pytest.raises(UsageError, match="vectors of 3 dimensions"):
        search(index, indexes.ask(vectors={"q": [1.0, 2.0, 3.0]}), Settings("dense-exact"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"question": ["x"]}), "one of case_id"),
        (pa.table({"case_id": ["a"]}), "one of question"),
        (pa.table({"case_id": ["a"], "question": pa.array([None], pa.string())}), "null question"),
        (pa.table({"case_id": ["a", "b", "a"], "question": ["x"] * 3}), "rows 1 and 3"),
        (pa.table({"case_id": ["a"], "vector": [[math.nan]]}), "vector holds nan"),
    ],
)
def test_questions__that_are_broken_are_refused_by_name(table, said):
    with pytest.raises(InputError, match=said):
        read_questions(table)


def test_questions__of_a_split(tmp_path):
    import pyarrow.feather as feather

    table = pa.table({"case_id": ["a", "b"], "question": ["x", "y"], "split": ["test", "dev"]})
    assert read_questions(table, "dev").case_ids == ["b"]
    with pytest.raises(InputError, match="splits dev, test; expected cases of split 'train'"):
        read_questions(table, "train")
    with pytest.raises(InputError, match="no column split"):
        read_questions(table.drop(["split"]), "test")
    (tmp_path / "x").write_text("hello")
    for path in (tmp_path / "x", tmp_path / "none"):
        with pytest.raises(InputError):
            read_questions(path)
    feather.write_feather(table, str(tmp_path / "cases.arrow"))
    assert len(read_questions(tmp_path)) == 2


def test_vectors__by_id_are_complete_or_refused(tmp_path):
    import pyarrow.feather as feather

    path = tmp_path / "v.arrow"
    column = indexes.vector_column(np.eye(2, dtype=np.float32))
    feather.write_feather(pa.table({"doc_id": ["a", "b"], "vector": column}), str(path))
    assert vectors_by_id(path, ["b"]).tolist() == [[0.0, 1.0]]
    with pytest.raises(InputError, match="no vector of chunk 'c' \\(1 of 2 have none\\)"):
        vectors_by_id(path, ["a", "c"])
    feather.write_feather(pa.table({"doc_id": ["a", "a"], "vector": column}), str(path))
    with pytest.raises(InputError, match="'a' in rows 1 and 2"):
        vectors_by_id(path, ["a"])
    feather.write_feather(pa.table({"doc_id": ["a"]}), str(path))
    with pytest.raises(InputError, match="a column vector"):
        vectors_by_id(path, ["a"])


def test_search__weights_are_one_a_channel(index):
    questions = indexes.ask(QUESTIONS, ASKED)
    for settings, said in (
        (Settings("hybrid", weights=(1.0,)), "1 weights for hybrid"),
        (Settings("bm25", weights=(1.0, 2.0)), "2 weights for bm25"),
        (Settings("hybrid", rrf_k=-1.0), "rrf-k is -1"),
    ):
        with pytest.raises(UsageError, match=said):
            search(index, questions, settings)
    lists = indexes.names(indexes.ranked(index, questions, strategy="hybrid", weights=(0.0, 1.0)))
    dense = indexes.names(indexes.ranked(index, questions, strategy="dense"))
    assert lists["q2"][: len(dense["q2"])] == dense["q2"]
