"""Which function checks which case, and the check of plain cases that need none of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragcore
from conformance import shapes
from conformance.shapes import Case
from ragcore.errors import RagcoreError

Handler = Callable[[Case, Path], None]

HANDLERS: dict[str, Handler] = {}


def handles(*ids: str) -> Callable[[Handler], Handler]:
    """Name the cases that a function checks."""

    def register(handler: Handler) -> Handler:
        for each in ids:
            assert each not in HANDLERS, each
            HANDLERS[each] = handler
        return handler

    return register


OPTIONS = {"relevance_level": "rel"}
"""Option of a case -> argument of `score`."""


def is_plain(case: Case) -> bool:
    """Judgements, one run and measures, with nothing that needs a setting of its own."""
    parts = set(case["input"])
    texts = {"qrels_text", "run_text"} & parts
    plain = parts - {"options", "qrels_text", "run_text"} | {each[:-5] for each in texts}
    options = case["input"].get("options", {})
    return plain == {"qrels", "run", "metrics"} and set(options) <= set(OPTIONS)


def plain_ways(case: Case, folder: Path) -> list[shapes.Way]:
    """All forms of a case; only the text itself where the case is about text."""
    given = case["input"]
    if {"qrels_text", "run_text"} & set(given):
        run = given.get("run_text") or "\n".join(given["run"]) + "\n"
        qrels = given.get("qrels_text") or "\n".join(given["qrels"]) + "\n"
        run_path = shapes.write_text(folder / "run.trec", run)
        return [shapes.Way("text", run_path, shapes.write_text(folder / "qrels.trec", qrels), {})]
    return list(shapes.ways(shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"]), folder))


def check_expected(scores: Any, case: Case, way: str) -> None:
    """Every key of what is expected is looked at; one that nobody knows is a failure."""
    names, tolerance = case["input"]["metrics"], case["tolerance"]
    for key, expected in case["expected"].items():
        if key in names:
            assert shapes.near(scores.mean(key), expected, tolerance), (way, key, scores.mean(key))
        elif key == "per_query":
            (name,) = names
            for topic, value in expected.items():
                assert shapes.near(scores.value(name, topic), value, tolerance), (way, topic)
        elif key == "n":
            assert shapes.n_ok(scores, names[0]) == expected, way
        elif key == "flag":
            assert scores.audits[0].no_relevant == list(shapes.qrels_of(case["input"]["qrels"]))
        else:
            assert key == "or", f"{case['id']} expects {key!r}, which nothing checks"


def check_plain(case: Case, folder: Path) -> None:
    """Score in every form and compare with what the case expects."""
    options = {OPTIONS[k]: v for k, v in case["input"].get("options", {}).items()}
    for way in plain_ways(case, folder):
        arguments = {"qrels": way.qrels, "measures": case["input"]["metrics"], **options}
        if "error" in case["expected"]:
            with pytest.raises(RagcoreError):
                ragcore.score(way.run, **arguments, **way.options)
        else:
            check_expected(ragcore.score(way.run, **arguments, **way.options), case, way.name)
