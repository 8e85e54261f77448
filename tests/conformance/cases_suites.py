"""Cases about suites: what joins a case, where a search may look, values that drift."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import indexes
import tables
from conformance.registry import handles
from conformance.shapes import Case
from ragcore import score
from ragcore.expectations import DRIFT, OFF, SAME, expectations
from ragcore.filters import Filter
from ragcore.search import search
from ragcore.search_settings import Settings
from ragcore.suites import manifest_of


@handles("RC-132")
def cases_join_by_id_and_never_by_their_question(case: Case, folder: Path) -> None:
    golden, expected = case["input"]["golden"], case["expected"]["recall_by_id"]
    suite = tables.write_suite(folder / "s", pa.table({
        "case_id": list(expected), "question": [one["query"] for one in golden],
        "evidence": [tables.evidence(*((c, 1, True) for c in one["expected_chunks"]))
                     for one in golden],
    }))  # fmt: skip
    found = case["input"]["retrieved"]
    run = pa.table({"case_id": list(expected), "ranked": [found] * len(expected)})
    for name in ("SetR", "retrieval.coverage"):
        scores = score(run, suite=suite, measures=[name])
        assert {one: scores.value(name, one) for one in expected} == expected


@handles("RC-134")
def a_search_may_be_kept_inside_the_paper_of_its_question(case: Case, folder: Path) -> None:
    texts = {f"{paper}:{i}": f"results of run {i}" for paper in ("p1", "p2") for i in range(3)}
    papers = [name.split(":")[0] for name in texts]
    index = indexes.make(folder / "i", texts, columns={"paper": papers})
    asked = indexes.ask({"q1": "results", "q2": "results"}, paper=["p1", "p2"])
    settings = Settings(strategy="bm25", candidate_k=10, filters=(Filter.parse("paper"),))
    found = search(index, asked, settings)
    for row in found.table.to_pylist():
        own = {"q1": "p1", "q2": "p2"}[row["case_id"]]
        assert {item["id"].split(":")[0] for item in row["ranked"]} == {own}
        assert len(row["ranked"]) == 3
    (scope,) = manifest_of(found.table)["filters"]
    assert f"scope=per-{scope}" == case["expected"]["report"]


@handles("RC-137")
def a_value_within_the_tolerance_has_drifted(case: Case, folder: Path) -> None:
    ((name, value),) = case["input"]["expected"].items()
    ids = [f"q{i}" for i in range(10_000)]
    right = round(case["input"]["observed"] * len(ids))
    suite = tables.write_suite(
        folder / "s",
        pa.table({"case_id": ids, "evidence": [tables.evidence(("d", 1))] * len(ids)}),
        f'name = "s"\n[expected]\nmade_with = "index 3"\n[expected.runs.r]\n"{name}" = {value}\n',
    )
    for hits, status in ((right, DRIFT), (right - 1, SAME), (right + 10, OFF)):
        lists = [["d"] if i < hits else ["x"] for i in range(len(ids))]
        run = pa.table({"case_id": ids, "ranked": lists})
        (one,) = expectations(score(run, suite=suite, measures=[name], names=["r"]))
        assert one.status == status
        assert "made with index 3" in one.sentence()
    assert case["expected"]["status"].startswith(DRIFT)
