"""CMRC 2018, XQuAD and COVID-QA as suites: counts, labels against their qrels, known figures."""

from __future__ import annotations

import importlib
import json
from collections import Counter, defaultdict

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import importers
import ragcore
from ragcore import schema

NAMES = ("cmrc2018", "xquad", "covidqa")
MEASURES = ["nDCG@10", "R@5", "RR@10", "Success@1"]


MOVED = {"covidqa": {"1689:2511", "2642:3797"}}
"""Questions whose text stands twice in its article: the qrels have the first place, the suite has
the one that is nearest to the place given."""


@pytest.fixture(scope="module", params=NAMES)
def world(request, collections):
    return collections(request.param)


@pytest.fixture(scope="module")
def stored(world):
    """Of what is shared beside its files: a run over its own questions."""
    ranked = world.shared["runs"].filter(pl.col("system").is_in(("bm25", "bm25@article")))
    return ranked.join(asked(world), on="query_id", how="semi", maintain_order="left")


@pytest.fixture(scope="module")
def qrels(world):
    """And the judgements of these questions."""
    own = world.shared["qrels"].join(asked(world), on="query_id", how="semi")
    return own.select("query_id", "doc_id", "relevance")


def asked(world):
    return pl.DataFrame({"query_id": [key_of(c) for c in world.made.cases.to_pylist()]})


def key_of(case):
    """The id of a case in the collection's own judgements."""
    return case.get("query_id", case["case_id"])


@pytest.fixture(scope="module")
def by_qrels(stored, qrels):
    """Scores of the stored run under the qrels, in its own order."""
    run = stored.select("query_id", "doc_id", (-pl.col("rank").cast(pl.Float64)).alias("score"))
    return ragcore.score(run.to_arrow(), qrels=qrels.to_arrow(), measures=MEASURES)


def test_counts__are_those_of_the_collections(world):
    cases = world.made.cases.to_pylist()
    counts = {"cmrc2018": (4221, 1104), "xquad": (2380, 480), "covidqa": (1380, 5269)}
    assert (len(cases), world.made.chunks.num_rows) == counts[world.name]
    assert len({(c["case_id"], c["lang"]) for c in cases}) == len(cases)


def test_labels__are_the_qrels_of_the_collection(world, qrels):
    """Each item lies in the units that the qrels name, and its quote at its place."""
    moved = MOVED.get(world.name, set())
    judged, chunks = defaultdict(set), defaultdict(list)
    for query, document, grade in qrels.iter_rows():
        assert grade == 1
        judged[query].add(document)
    for chunk in world.made.chunks.to_pylist():
        chunks[chunk["doc_id"]].append(chunk)
    for case in world.made.cases.to_pylist():
        found = set()
        for item in case["evidence"]:
            for chunk in chunks[item["doc_id"]]:
                start = chunk.get("start") or 0
                if start < item["end"] and start + len(chunk["text"]) > item["start"]:
                    found.add(chunk["chunk_id"])
                    low, high = max(item["start"] - start, 0), item["end"] - start
                    assert chunk["text"][low:high] == item["quote"]
        assert (judged[key_of(case)] == found) == (key_of(case) not in moved)


def test_stored_run__scores_as_under_the_qrels(world, stored, by_qrels):
    """Evidence by place and quote gives what ids give, case by case."""
    ranked = stored.sort("rank").group_by("query_id").agg(pl.struct(id="doc_id", score="score"))
    lists = dict(ranked.iter_rows())
    cases = world.made.cases.to_pylist()
    run = pa.table({
        "case_id": [c["case_id"] for c in cases], "lang": [c["lang"] for c in cases],
        "ranked": pa.array(
            [lists.get(key_of(c), []) for c in cases], schema.RUNS.field("ranked").type
        ),
    })  # fmt: skip
    ours = ragcore.score(run, suite=world.suite, measures=MEASURES)
    keys = defaultdict(list)
    for case in cases:
        keys[case["case_id"]].append(key_of(case))
    for name in ("nDCG@10", "RR@10"):
        own, other = ours.per_case(name), by_qrels.per_case(name)
        apart = {
            case for case, both in keys.items()
            if abs(own[case] - sum(other[q] for q in both) / len(both)) > 1e-12
        }  # fmt: skip
        assert apart <= MOVED.get(world.name, set())


def test_bm25__finds_about_what_another_one_found(world, by_qrels, tmp_path):
    """The stored run: k1 0.9, b 0.4, other tokens; of COVID-QA with the statistics of an article.

    Of XQuAD it knows one language at a time, so that each is searched alone here.
    """
    apart = {"cmrc2018": 0.003, "xquad": 0.004, "covidqa": 0.04}[world.name]
    how = {"strategy": "bm25", "k1": 0.9, "b": 0.4, "candidate_k": 20, "timing": "batch"}
    parts = []
    if world.name == "xquad":
        for lang in ("en", "zh"):
            chunks, cases = (t.filter(pc.field("lang") == lang)
                             for t in (world.made.chunks, world.made.cases))  # fmt: skip
            index = ragcore.build_index(chunks, tmp_path / lang, hnsw=False)
            parts.append(ragcore.search(index, cases, **how).table)
    else:
        filters = ["doc_id"] if world.name == "covidqa" else []
        parts.append(ragcore.search(world.index(), world.suite, filters=filters, **how).table)
    run = pa.concat_tables([part.select(["case_id", "lang", "ranked"]) for part in parts])
    ours = ragcore.score(run, suite=world.suite, measures=MEASURES)
    for measure in MEASURES:
        assert ours.mean(measure) == pytest.approx(by_qrels.mean(measure), abs=apart)


def test_scopes__keep_to_their_part(world):
    for scope in world.entry.scopes:
        run = world.found("bm25", scope.name)
        parts = {c["chunk_id"]: c for c in world.made.chunks.to_pylist()}
        asked = world.made.cases.to_pylist()
        for row, case in zip(run.to_pylist(), asked, strict=True):
            for column in scope.filters:
                own = {parts[item["id"]][column] for item in row["ranked"]}
                assert own <= {case[column]}
        scores = world.scored(run)
        assert all(0.4 < scores.mean(name) <= 1.0 for name in scores.measures)
        assert scores.audits[0].counts.get("evidence items stale", 0) == 0


def test_notes__count_what_is_left_or_moved(world):
    said = " ".join(world.made.notes)
    expected = {
        "cmrc2018": ("205 answers of 10,659", "12 are elsewhere", "193 nowhere", "8 labels moved",
                     "6,438 further answers"),
        "xquad": ("4,760 questions and 960 paragraphs in ar, hi, ru, th left out",),
        "covidqa": ("234 answers of 1,380", "234 are elsewhere", "0 nowhere",
                    "1,576 items of 1,380 labels"),
    }  # fmt: skip
    for part in expected[world.name]:
        assert part in said
    cases = world.made.cases.to_pylist()
    assert all(c["references"] for c in cases)
    if world.name == "cmrc2018":
        assert Counter(c["source_split"] for c in cases) == {"dev": 3219, "trial": 1002}


# --- the official files, made again out of the pinned tables


def squad_form(corpus, queries, answers, document, question):
    """Paragraphs, one an article, in SQuAD's form."""
    said, asked, articles = defaultdict(list), defaultdict(list), []
    for row in answers.sort("annotator").iter_rows(named=True):
        said[row["query_id"]].append({"text": row["text"], "answer_start": row["start_codepoint"]})
    places = dict(answers.select("query_id", "doc_id").iter_rows())
    for row in queries.iter_rows(named=True):
        asked[places[row["query_id"]]].append(
            {"id": question(row), "question": row["text"], "answers": said[row["query_id"]]}
        )
    for row in corpus.iter_rows(named=True):
        paragraph = {"context": row["text"], "qas": asked[row["doc_id"]], **document(row)}
        articles.append((row, paragraph))
    return articles


def test_official__files_give_the_same_suite(world, tmp_path):
    tables = world.shared

    def write(name, articles, keyed):
        data = {}
        for row, paragraph in articles:
            title = row["title"] if world.name != "covidqa" else ""
            one = data.setdefault(keyed(row), {"title": title, "paragraphs": []})
            one["paragraphs"].append(paragraph)
        (tmp_path / name).write_text(json.dumps({"data": list(data.values())}), "utf-8")

    parts: list[tuple[str, str, str]] = {
        "cmrc2018": [("split", "dev", "cmrc2018_dev.json"),
                     ("split", "trial", "cmrc2018_trial.json")],
        "xquad": [("lang", "en", "xquad.en.json"), ("lang", "zh", "xquad.zh.json")],
        "covidqa": [("", "", "200423_covidQA.json")],
    }[world.name]  # fmt: skip
    for column, value, name in parts:
        corpus, queries = tables.get("corpus", tables.get("documents")), tables["queries"]
        if column:
            corpus = corpus.filter(pl.col(column) == value)
            queries = queries.filter(pl.col(column) == value)
        answers = tables["answers"].join(queries, on="query_id", how="semi", maintain_order="left")
        if world.name == "xquad":
            made = squad_form(corpus, queries, answers, lambda _: {}, lambda r: r["parallel_id"])
            write(name, made, lambda row: row["parallel_id"].split(":")[0])
        elif world.name == "cmrc2018":
            made = squad_form(
                corpus, queries, answers, lambda r: {"id": r["doc_id"]}, lambda r: r["query_id"]
            )
            write(name, made, lambda row: row["doc_id"])
        else:
            made = squad_form(
                corpus, queries, answers, lambda r: {"document_id": r["doc_id"]},
                lambda r: int(r["query_id"].split(":")[1]),
            )  # fmt: skip
            write(name, made, lambda row: row["doc_id"])
    module = importlib.import_module(f"ragcore.public.{world.name}")
    importers.same(module.build(module.official(tmp_path)), world.made, notes=False)
