"""What changes with the judge: flips, their effect, and frozen outputs as what they replay."""

from __future__ import annotations

import pyarrow as pa
import pytest

import reference_items as plain
from ragcore.errors import InputError, UsageError
from ragcore.judges.items import items_of
from ragcore.judges.sensitivity import as_replayed, replays, sensitivities
from ragcore.judges.views import judges_of
from ragcore.judgments import read_judgments
from ragcore.stats import paired


def looked(*rows, replay=None):
    items = items_of(as_replayed(read_judgments(plain.table(*rows)), replay or {}))
    return items, judges_of(items.judgments)


def test_sensitivity__flips_and_their_effect():
    a = {"x": "yn", "y": "yy", "z": "nn"}
    b = {"x": "yy", "y": "py", "z": "nn"}
    words = {"y": "yes", "n": "no", "p": "partial"}
    rows = [
        {"case_id": c, "claim": k, "verdict": words[v], "judge_version": version}
        for version, side in (("1", a), ("2", b)) for c, own in side.items()
        for k, v in enumerate(own)
    ]  # fmt: skip
    rows += [{"case_id": "x", "claim": 7, "judge_version": "1"}]
    rows += [{"case_id": "x", "claim": 8, "judge_version": v} for v in "2"]
    rows += [
        {"case_id": "x", "claim": 9, "judge_version": v, "verdict": w}
        for v, w in (("1", "yes"), ("2", "error"))
    ]
    items, judges = looked(*rows)
    (one,) = sensitivities(items, judges, "j@1", "j@2")
    assert one.flips == {("no", "yes"): 1, ("yes", "partial"): 1}
    assert (one.n_items, one.n_flips, one.n_open, one.n_before, one.n_after) == (6, 2, 1, 1, 1)
    wanted = paired({"x": 0.5, "y": 1.0, "z": 0.0}, {"x": 1.0, "y": 0.5, "z": 0.0})
    assert one.effect.delta == wanted.delta == 0.0
    assert (one.effect.low, one.effect.high) == (wanted.low, wanted.high)
    assert one.effect.p_value == wanted.p_value


def trace_table(run, condition, pairs, case="a"):
    return run, pa.table(
        {"case_id": [case] * len(pairs), "trace": [f"{run}{i}" for i in range(len(pairs))],
         "pair": pa.array(pairs, pa.string()), "condition": [condition] * len(pairs),
         "repeat": list(range(len(pairs)))}
    )  # fmt: skip


def test_replays__bring_a_frozen_output_to_its_run():
    runs = [
        trace_table("r", "end_to_end", [None, None]),
        trace_table("s", "frozen_output", ["r0", "r1"]),
        trace_table("t", "frozen_context", ["r0", "r1"]),
    ]
    assert replays(runs) == {"s": "r"}
    rows = [{"run": "r", "judge": "a"}, {"run": "s", "judge": "b", "verdict": "no"}]
    items, judges = looked(*rows, replay={"s": "r"})
    (one,) = sensitivities(items, judges, "a", "b")
    assert (one.run, one.flips) == ("r", {("yes", "no"): 1})
    assert sensitivities(*looked(*rows), "a", "b") == []


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [(["gone"], "pair 'gone'"), (["r1"], "that replays"), (["r0", "q1"], "runs 'r' and 'q'")],
)
def test_replays__refuse_what_is_no_replay(pairs, wanted):
    runs = [
        trace_table("r", "end_to_end", [None, None]), trace_table("q", "end_to_end", [None, None]),
        trace_table("s", "frozen_output", pairs),
    ]  # fmt: skip
    with pytest.raises(InputError, match=wanted):
        replays(runs)


def test_sensitivity__an_unknown_judge_is_named():
    with pytest.raises(UsageError, match="no verdict is of a judge 'k'"):
        sensitivities(*looked({}), "j", "k")
