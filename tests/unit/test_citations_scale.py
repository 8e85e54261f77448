"""Citations of very many traces: no Python for each, and the numbers of so many copies of few."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pyarrow as pa
import pytest

import citation_world as world
from citation_world import GOOD, NAMES, QUERY, TEXT, UNIT, cite, claim, run, shown, suite
from ragcore import schema, score
from ragcore.measures import layered
from ragcore_kernels import amounts, citations
from ragcore_kernels._jit import JIT, compiled_count

N, FEW = 200_000, 8
KINDS = [
    GOOD,
    {**GOOD, "citations": [cite("u", start=0, end=28), cite("w", -1), cite("gone", 5)]},
    {**GOOD, "citations": [], "claims": [claim(), claim("b", 1)]},
    {**GOOD, "citations": [cite("u", quote="Meals"), cite("w", None)], "context": shown("w")},
]  # fmt: skip


@pytest.mark.skipif(not JIT, reason="takes minutes without compilation")
def test_scale__no_python_for_each_trace(tmp_path):
    names = [f"c{i}" for i in range(FEW)]
    cases = [{**QUERY, "case_id": name} for name in names]
    folder = suite(tmp_path / "s", cases, [UNIT, {"chunk_id": "w", "text": TEXT}])
    table = run([{**KINDS[i % len(KINDS)], "case_id": name} for i, name in enumerate(names)])
    verdicts = [
        {"case_id": name, "evidence": ["u"], "verdict": "no" if i == 1 else "yes"}
        for i, name in enumerate(names) if i % 4 < 2
    ]  # fmt: skip
    small = score(table, suite=folder, judgments=[world.judged(verdicts)], measures=NAMES).runs[0]
    few = small.inputs
    rows = np.arange(N) % FEW
    match = dataclasses.replace(few.match, case_of=few.match.case_of[rows], lang=None, repeat=None,
                                needed=few.match.needed[rows])  # fmt: skip
    inputs = dataclasses.replace(
        few, traces=table.take(pa.array(rows)), row_of=np.arange(N), label_of=few.label_of[rows],
        status=few.status[rows], match=match, counts={}, warnings=[], _made={},
    )  # fmt: skip
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        values, states, _ = layered.evaluate(small.measures, inputs)
    finally:
        sys.setprofile(None)
    assert calls < N // 20
    for m, measure in enumerate(small.measures):
        got = np.where(states[m] == schema.OK, values[m], -1.0 - states[m])
        wanted = np.where(small.states[m] == schema.OK, small.values[m], -1.0 - small.states[m])
        assert np.array_equal(got.reshape(-1, FEW), np.tile(wanted, (N // FEW, 1))), measure.text
    assert inputs.counts["citations of claim -1"] == N // len(KINDS)
    assert compiled_count(amounts.hold_values) == 1
    for name in ("find_shown", "locate", "spans_inside", "contained"):
        assert compiled_count(getattr(citations, name)) <= 1, name
