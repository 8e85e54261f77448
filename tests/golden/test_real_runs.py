"""Published runs, topic by topic, against the reference in Python and against pytrec_eval.

pytrec_eval keeps scores in single precision. Where two scores of a topic differ as float64
but not as float32 its order may differ from ours: such topics are found, counted, and left
out of that comparison alone.
"""

from __future__ import annotations

import functools
import math
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import ragcore
import reference
from reference_data import Qrels, Run, folder_or_reason, read_qrels, read_runs

pytrec_eval = pytest.importorskip("pytrec_eval")


class Published(NamedTuple):
    """A run of a collection, and its topics that single precision reorders or may."""

    folder: str
    file: str
    system: str
    n_biting: int
    qrels: str = "qrels.parquet"

    def __str__(self) -> str:
        return f"{self.folder}:{self.system}"


RUNS = [
    Published("trec_robust03", "run_InexpC2.parquet", "InexpC2", 16),
    Published("trec_robust03", "run_SABIR03BASE.parquet", "SABIR03BASE", 0),
    Published("trec_robust03", "run_pircRBa1.parquet", "pircRBa1", 0),
    Published("trec_robust03", "run_rutcor03100.parquet", "rutcor03100", 0),
    Published("trec_robust03", "run_humR03dc.parquet", "humR03dc", 0),
    Published("trec_robust03", "run_NLPR03vb10.parquet", "NLPR03vb10", 0),
    Published("trec_robust03", "run_UAmsT03RDesc.parquet", "UAmsT03RDesc", 17),
    Published("trec_web_neg", "runs.parquet", "bm25-wt11", 0),
    Published("trec_web_neg", "runs.parquet", "bm25-wt12", 0),
    Published("trec_web_neg", "runs.parquet", "bm25-wt13", 0),
    Published("trec_web_neg", "runs.parquet", "bm25-wt14", 0),
    Published("cacm", "runs.parquet", "Anserini", 0),
    Published("cacm", "runs.parquet", "bm25", 0),
    Published("cacm", "runs.parquet", "tfidf", 0),
    Published("cacm", "runs.parquet", "lsa128", 0),
    Published("cacm", "runs.parquet", "rrf_bm25_lsa", 0),
    Published(
        "trec_eval_golden", "rag24_run.parquet", "comment.test", 0, qrels="rag24_qrels.parquet"
    ),
]

MEASURES = [
    "nDCG", "nDCG@10", "nDCG_exp@10", "AP", "AP@100", "RR", "RR@10", "P@5", "P@1000", "R@100",
    "R_capped@20", "Success@1", "Success@10", "Rprec", "Bpref", "infAP", "RBP(p=0.8)", "ERR@20",
    "IPrec@0.1", "IPrec@0.0", "IPrec@1.0", "Judged@10", "SetP", "SetR", "SetF", "NumRet",
    "NumRel", "NumRelRet", "P(rel=2)@10", "AP(rel=2)", "Bpref(rel=2)", "nDCG(judged_only=True)@10",
    "AP(judged_only=True)",
]  # fmt: skip

PYTREC_EVAL = {
    "map": "AP",
    "map_cut_10": "AP@10",
    "map_cut_100": "AP@100",
    "ndcg": "nDCG",
    "ndcg_cut_5": "nDCG@5",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut_1000": "nDCG@1000",
    "recip_rank": "RR",
    "P_5": "P@5",
    "P_100": "P@100",
    "recall_10": "R@10",
    "recall_1000": "R@1000",
    "success_1": "Success@1",
    "success_10": "Success@10",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "infAP": "infAP",
    "set_P": "SetP",
    "set_recall": "SetR",
    "set_F": "SetF",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "relative_P_20": "R_capped@20",
    "Rprec_mult_0.40": "Rprec_mult_0.40",
    "binG": "binG",
    "utility": "utility",
    "set_map": "set_map",
}
"""pytrec_eval's name -> ours. Interpolated precision is not here: trec_eval 10 rounds the
recall points in another way than the version inside pytrec_eval."""


def path_of(published: Published, file: str) -> Path:
    return folder_or_reason("data")[0] / published.folder / file


@functools.cache
def load(published: Published) -> tuple[Run, Qrels]:
    runs = read_runs(path_of(published, published.file))
    return runs[published.system], read_qrels(path_of(published, published.qrels))


def table_of(published: Published) -> pa.Table:
    table = pq.read_table(path_of(published, published.file))
    rows = table.filter(pc.equal(table["system"], published.system))
    return rows.select(["query_id", "doc_id", "rank", "score"])


def biting(run: Run) -> set[str]:
    """Topics in which two scores are one in float32 but not in float64."""
    found = set()
    for topic, rows in run.items():
        values = np.unique(np.array([value for _, value in rows], np.float64))
        if (np.diff(values.astype(np.float32)) == 0).any():
            found.add(topic)
    return found


def near(value: float | None, expected: float | None) -> bool:
    if value is None or expected is None:
        return value is expected
    return math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-12)


def every_fifth(topics: list[str]) -> list[str]:
    return sorted(topics)[::5]


@functools.cache
def scores_of(published: Published) -> Any:
    names = MEASURES + sorted(set(PYTREC_EVAL.values()) - set(MEASURES))
    return ragcore.score(
        table_of(published), qrels=path_of(published, published.qrels), measures=names
    )


@functools.cache
def peer_of(published: Published) -> dict[str, dict[str, float]]:
    run, qrels = load(published)
    families = {"map_cut", "ndcg_cut", "P", "recall", "success", "relative_P", "Rprec_mult"}
    plain = {name for name in PYTREC_EVAL if name.rpartition("_")[0] not in families}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, families | plain)
    return evaluator.evaluate({topic: dict(rows) for topic, rows in run.items()})


def compare_with_reference(published: Published, topics: list[str]) -> None:
    run, qrels = load(published)
    scores = scores_of(published)
    for topic in topics:
        ranked = reference.order(run.get(topic, []))
        for name in MEASURES:
            expected = reference.score(name, ranked, qrels[topic])
            assert near(scores.value(name, topic), expected), (topic, name)


pytestmark = pytest.mark.usefixtures("shared_data")


@pytest.mark.parametrize("published", RUNS, ids=str)
def test_score__equals_reference_on_every_topic(published: Published) -> None:
    compare_with_reference(published, sorted(load(published)[1]))


@pytest.mark.parametrize("published", RUNS, ids=str)
def test_score__equals_pytrec_eval(published: Published) -> None:
    scores, expected = scores_of(published), peer_of(published)
    topics = sorted(set(expected) - biting(load(published)[0]))
    assert topics
    for topic in topics:
        for theirs, ours in PYTREC_EVAL.items():
            assert near(scores.value(ours, topic), expected[topic][theirs]), (topic, ours)


@pytest.mark.parametrize("published", RUNS, ids=str)
def test_mean__is_over_all_judged_topics(published: Published) -> None:
    _, qrels = load(published)
    scores = scores_of(published)
    for name in ("AP", "nDCG@10", "P@5"):
        values = [scores.value(name, topic) for topic in qrels]
        assert near(scores.mean(name), math.fsum(v or 0.0 for v in values) / len(qrels))


@pytest.mark.parametrize("published", RUNS, ids=str)
def test_reference__equals_pytrec_eval(published: Published) -> None:
    run, qrels = load(published)
    expected = peer_of(published)
    for topic in every_fifth(list(set(expected) - biting(run))):
        ranked = reference.order(run[topic])
        for theirs, ours in PYTREC_EVAL.items():
            value = reference.score(ours, ranked, qrels[topic])
            assert near(value, expected[topic][theirs]), (topic, ours)


GRADED = [run for run in RUNS if run.folder == "trec_web_neg"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the other tool's own code
@pytest.mark.parametrize("published", GRADED, ids=str)
def test_reference__equals_gdeval(published: Published) -> None:
    """ERR and the exponential gain, to the five decimals that the track's script prints."""
    measures = pytest.importorskip("ir_measures")
    if shutil.which("perl") is None:
        pytest.skip("gdeval is a script for perl, which is not installed")
    run, qrels = load(published)
    theirs = {"ERR@20": "ERR@20", "nDCG_exp@10": "nDCG(dcg='exp-log2')@10"}
    for ours, name in theirs.items():
        mappings = {topic: dict(rows) for topic, rows in run.items()}
        values = list(measures.iter_calc([measures.parse_measure(name)], qrels, mappings))
        assert set(run) & set(qrels) <= {value.query_id for value in values}
        for value in values:
            ranked = reference.order(run.get(value.query_id, []))
            mine = reference.score(ours, ranked, qrels[value.query_id])
            assert mine is not None
            assert abs(mine - value.value) < 6e-6, (value.query_id, ours)


@pytest.mark.parametrize("published", RUNS, ids=str)
def test_single_precision__bites_in_so_many_topics(published: Published) -> None:
    assert len(biting(load(published)[0])) == published.n_biting


def test_runs__are_all_there(shared_data: Path) -> None:
    for folder, pattern in (
        ("trec_robust03", "run_*"),
        ("trec_web_neg", "runs*"),
        ("cacm", "runs*"),
    ):
        for path in (shared_data / folder).glob(pattern):
            systems = set(pc.unique(pq.read_table(path, columns=["system"])["system"]).to_pylist())
            assert systems == {
                run.system for run in RUNS if run.folder == folder and run.file == path.name
            }
