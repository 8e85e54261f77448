"""The sweep of the in-domain suite: what docs/experiments.md says is what comes out."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from ragcore import score

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "experiments.md").read_text("utf-8")


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("bench.sweeps")


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="module")
def found(bench, state):
    return bench.found(state)


def block(key):
    (text,) = re.findall(rf"<!-- begin {key} -->\n(.*?)\n<!-- end {key} -->", PAGE, re.DOTALL)
    return text.splitlines()


def untimed(lines, found):
    """Rows as they stand but for gains that only a clock made a product decision."""
    slow = [
        any(why.startswith("p95 grows") for why in row.get("reasons", ())) for row in found.rows
    ]
    return [*lines[:2], *(
        line.replace("product decision", "adopt") if late else line
        for line, late in zip(lines[2:], slow, strict=True)
    )]  # fmt: skip


def test_page__has_the_rows_and_the_curve(bench, found):
    assert block("rows") == untimed(bench.rows(found), found), "python -m bench.sweeps --update"
    assert block("curve") == bench.curve(found)
    said = [line.partition("interval")[0] for line in block("words")]
    assert said == [line.partition("interval")[0] for line in bench.words(found)]


def test_experiments__are_all_there_and_none_is_invented(found):
    kinds = [row["experiment"] for row in found.rows]
    assert list(dict.fromkeys(kinds)) == [
        "candidate_k", "context_k", "ladder", "threshold", "chunking", "deviation"
    ]  # fmt: skip
    assert [row["name"] for row in found.rows if row["state"] == "not evaluated"] == [
        "hybrid-exact+reranker"
    ]
    for row in found.rows:
        if row["state"] == "evaluated":
            assert row["single_change"], row["name"]
            assert row["p50_us"] > 0
            assert row["index_bytes"] > 0
            assert row["context_tokens"] > 0


def test_runs__that_are_kept_score_the_same_by_themselves(found, state):
    for name in ("bm25", "dense-exact"):
        shown = found.standing(found.row(name))
        kept = [
            path
            for path in (state / "runs").glob("*.arrow")
            if re.fullmatch(rf"{name}-[0-9a-f]+", path.stem)
        ]
        scores = score(
            kept[:1], suite=ROOT / "data" / "in_domain", measures=["R@5"], topics="common"
        )
        cells = {c["measure"]: c for c in shown["cells"] if c["slice"] == "all"}
        assert cells["R@5"]["mean"] == scores.mean("R@5")


def test_threshold__was_chosen_without_looking_at_the_split_that_it_is_tested_on(found):
    assert {row["split"] for row in found.curve} == {"validation"}
    (row,) = [one for one in found.rows if one["experiment"] == "threshold"]
    assert row["changes"] == ["threshold.dense_exact: off -> 0.88"]
    assert not row["tainted"]
