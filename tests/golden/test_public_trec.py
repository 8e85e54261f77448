"""Classic collections as suites, against another engine and figures that came with the data."""

from __future__ import annotations

import gzip
import html

import polars as pl
import pytest

import importers
import ragcore
from ragcore.public import trec
from ragcore.public import trec_files as files
from ragcore.public.columns import flat_run

pytrec_eval = pytest.importorskip("pytrec_eval")

MEASURES = {"AP": "map", "nDCG@10": "ndcg_cut_10", "P@10": "P_10", "R@100": "recall_100",
            "RR": "recip_rank", "Bpref": "bpref"}  # fmt: skip
SUITES = ("trec-robust03", "trec-web", "cacm", "cranfield")


@pytest.fixture(scope="module")
def worlds(collections):
    return {name: collections(name) for name in SUITES}


def test_suites__have_the_counts_of_the_collections(worlds):
    counts = {}
    for name, world in worlds.items():
        suite = world.made
        evidence = suite.cases["evidence"].to_pylist()
        n_rows = {run: table.num_rows for run, table in suite.runs.items()}
        counts[name] = (
            len(evidence), sum(one is not None for one in evidence),
            sum(len(one or ()) for one in evidence), sum(n_rows.values()), len(n_rows),
            suite.chunks and suite.chunks.num_rows,
        )  # fmt: skip
    assert counts == {
        "trec-robust03": (100, 100, 128_796, 511_004, 7, None),
        "trec-web": (200, 200, 64_342, 19_628, 1, None),
        "cacm": (64, 52, 796, 1_920, 1, 3204),
        "cranfield": (225, 225, 1837, 0, 0, 1400),
    }


def test_suites__count_their_traps(worlds):
    cacm, web, cranfield = (worlds[name].made.notes for name in ("cacm", "trec-web", "cranfield"))
    assert any(note.startswith("55 judgements of documents that") for note in cacm)
    assert any(note.startswith("12 topics of 64 without any judgement") for note in cacm)
    assert any(note.startswith("2,667 judgements of 64,342 below 0") for note in web)
    assert any(note.startswith("225 judgements of 1,837 below 0") for note in cranfield)
    assert any(note.startswith("2 documents without a text") for note in cranfield)


def as_mapping(table):
    out: dict[str, dict[str, float]] = {}
    columns = (table[name].to_pylist() for name in ("case_id", "id", "score"))
    for topic, document, value in zip(*columns, strict=True):
        out.setdefault(topic, {})[document] = value
    return out


@pytest.mark.parametrize(
    ("name", "run"),
    [("trec-robust03", "pircRBa1"), ("trec-robust03", "NLPR03vb10"), ("trec-web", "bm25"),
     ("cacm", "Anserini")],
)  # fmt: skip
def test_runs__score_as_another_engine_has_it(worlds, name, run):
    world = worlds[name]
    judged: dict[str, dict[str, int]] = {}
    rows = world.shared["qrels"].select("query_id", "doc_id", "relevance").iter_rows()
    for topic, document, grade in rows:
        judged.setdefault(topic, {})[document] = grade
    table = world.made.runs[run]
    theirs = pytrec_eval.RelevanceEvaluator(
        judged, {"map", "ndcg_cut", "P", "recall", "recip_rank", "bpref"}
    ).evaluate(as_mapping(table))
    scores = ragcore.score(table, suite=world.suite, measures=list(MEASURES))
    assert len(theirs) == len(judged)
    for ours, known in MEASURES.items():
        found = scores.per_case(ours)
        for topic, values in theirs.items():
            assert found[topic] == pytest.approx(values[known], abs=1e-12), (topic, ours)


def test_means__are_those_that_came_with_the_data(worlds):
    """Over topics with judgements; of runs whose ties decide nothing."""
    known = {"cacm": {"Anserini": 0.4543, "bm25": 0.3946, "tfidf": 0.4328, "lsa128": 0.2619},
             "cranfield": {"bm25": 0.3104, "tfidf": 0.3302, "lsa128": 0.3666}}  # fmt: skip
    for name, figures in known.items():
        for system, figure in figures.items():
            run = flat_run(worlds[name].shared["runs"].filter(pl.col("system") == system))
            found = worlds[name].mean(run, "nDCG@10")
            assert found == pytest.approx(figure, abs=5e-5), (name, system)


@pytest.mark.parametrize(("name", "figure"), [("cacm", 0.3946), ("cranfield", 0.3104)])
def test_bm25__is_where_the_stored_runs_are(worlds, name, figure):
    """They were made with k1 0.9 and b 0.4, words as they stand; and with titles said twice."""
    run = worlds[name].found(analyzer="default", k1=0.9, b=0.4)
    assert worlds[name].mean(run, "nDCG@10") == pytest.approx(figure, abs=2e-4)


# --- the way back to their own files


def same(world, folder):
    importers.same(trec.build(trec.official(folder)), world.made, notes=False)


def lines(rows, *parts):
    return "".join(" ".join(str(part) for part in row) + "\n" for row in rows.select(parts).rows())


Q0 = pl.lit("Q0")
JUDGEMENT = ("query_id", Q0, "doc_id", "relevance")
ENTERED = "CA580101 JB March 1, 1978  8:28 PM"
ROW = ("query_id", Q0, "doc_id", "rank", "score", pl.lit("tag").alias("tag"))


def test_robust__official_gives_the_same_suite(worlds, tmp_path):
    given = worlds["trec-robust03"].shared
    (tmp_path / files.ROBUST).write_text(lines(given["qrels"], *JUDGEMENT))
    for name in files.ROBUST_RUNS:
        packed = gzip.compress(lines(given[f"run_{name}"], *ROW).encode(), 1)
        (tmp_path / f"input.{name}.gz").write_bytes(packed)
    same(worlds["trec-robust03"], tmp_path)


def test_web__official_gives_the_same_suite(worlds, tmp_path):
    given = worlds["trec-web"].shared
    (tmp_path / files.WEB).write_text("1 0 earlier 1\n" + lines(given["qrels"], *JUDGEMENT))
    rows = given["queries"].select("query_id", "text").rows()
    asked = "".join(f"query\t{number}\t{text}  \n" for number, text in rows)
    (tmp_path / files.WEB_QUERIES).write_text("query\t1\tan earlier one\n" + asked)
    for system, name in files.WEB_RUNS.items():
        own = given["runs"].filter(pl.col("system") == system)
        (tmp_path / name).write_text(lines(own, *ROW))
    same(worlds["trec-web"], tmp_path)


def test_cacm__official_gives_the_same_suite(worlds, tmp_path):
    given = worlds["cacm"].shared
    pages = {}
    for name, title, text in given["corpus"].select("doc_id", "title", "text").iter_rows():
        body = html.escape(f"{title}\n\n{text}\n\n{ENTERED}\n\n1\t5\t1\n")
        page = f"<html>\n<pre>\n\n\n{body}\n</pre>\n</html>\n"
        pages[f"{name}.html"] = page.encode("latin-1")
    importers.write_tar(tmp_path / files.CACM, pages)
    asked = given["queries"].select("query_id", "text").rows()
    text = "".join(f"<DOC>\n<DOCNO> {n} </DOCNO>\n\n {t}\n\n</DOC>\n" for n, t in asked)
    (tmp_path / files.CACM_TOPICS).write_text(text, encoding="latin-1")
    (tmp_path / files.CACM_QRELS).write_text(lines(given["qrels"], *JUDGEMENT))
    own = given["runs"].filter(pl.col("system") == "Anserini")
    (tmp_path / files.CACM_RUN).write_text(lines(own, *ROW))
    same(worlds["cacm"], tmp_path)


def test_cranfield__official_gives_the_same_suite(worlds, tmp_path):
    given = worlds["cranfield"].shared
    text = "".join(
        f".I {row['doc_id']}\n.T\n{row['title']}\n.A\n{row['author']}\n.B\n{row['bib']}\n"
        f".W\n{row['text']}\n"
        for row in given["corpus"].iter_rows(named=True)
    )
    (tmp_path / files.CRANFIELD).write_text(text, encoding="latin-1")
    rows = given["queries"].select("source_query_id", "text").rows()
    asked = "".join(f".I {number}\n.W\n{text}\n" for number, text in rows)
    (tmp_path / files.CRANFIELD_QUERIES).write_text(asked, encoding="latin-1")
    judged = lines(given["qrels"], "query_id", "doc_id", "source_code")
    (tmp_path / files.CRANFIELD_QRELS).write_text(judged)
    same(worlds["cranfield"], tmp_path)
