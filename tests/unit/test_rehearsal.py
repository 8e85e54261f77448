"""A release rehearsal: six injected faults, each localised by what the traces record."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import diagnosed as traces
import tables
from ragcore import score
from ragcore.cli import main
from ragcore.diagnose import diagnose
from ragcore.diagnosis import operations

N = 12


def timings(**stages):
    return [{"stage": name, "start_us": 0, "duration_us": 1000 * ms} for name, ms in stages.items()]


USUAL = {"search": 8, "rerank": 20, "generate": 400}


def calm(**changed):
    """A run of good traces; `changed` is for every one of them."""
    return [
        traces.trace(repeat=i, trace=f"t{i}", timings=timings(**USUAL), steps=2, **changed)
        for i in range(N)
    ]


def rehearse(folder, rows, **world):
    where = traces.suite(folder, **world)
    return diagnose(traces.run(*rows), suite=where, names=["rehearsal"])


def broken(found):
    return {
        gate.name: {v.repeat for v in gate.violations}
        for gates in found.hard.values() for gate in gates if gate.violations
    }  # fmt: skip


def test_calm__nothing_is_found(tmp_path):
    found = rehearse(tmp_path, calm())
    assert {t.layers for t in found.traces} == {"P P P P P P P N"}
    assert broken(found) == {}
    assert found.odd == {"rehearsal": []}


def test_parser_regression__is_in_the_corpus(tmp_path):
    cut = traces.corpus(rule={"text": "Rooms cost at most 750 yuan.", "end": 28})
    lost = {"state": "abstain", "value": None, "text": None}
    shown = [{"id": "rule#1", "start": 0, "end": 28}]
    rows = calm(context=shown, proposed=lost, final=lost, claims=[], citations=[])
    found = rehearse(tmp_path, rows, chunks=cut)
    for one in found.traces:
        assert (one.attribution.layer, one.layers[0]) == ("corpus", "F")


def test_stale_replica__is_named_by_generation_and_by_what_it_brings_back(tmp_path):
    rows = calm()
    again = traces.units("rule#1", "gone#1")
    for i in (4, 9):
        rows[i] |= {"index_generation": "g0", "ranked": again, "stages": [("bm25", again)]}
    found = rehearse(tmp_path, rows)
    assert broken(found) == {"deleted": {4, 9}}
    odd = found.odd["rehearsal"]
    assert [(one.repeat, one.what) for one in odd] == [
        (i, "index generation 'g0', not 'g1'") for i in (4, 9)
    ]


def test_stale_replica__the_manifest_says_which_generation(tmp_path):
    table = traces.run(*calm(), index_generation="g2")
    found = diagnose(table, suite=traces.suite(tmp_path))
    assert len(next(iter(found.odd.values()))) == N


def test_missing_acl__is_a_candidate_even_where_nothing_is_shown(tmp_path):
    rows = calm()
    seen = traces.units("rule#1", "board#1")
    rows[7] |= {"stages": [("bm25", seen)]}
    found = rehearse(tmp_path, rows)
    assert broken(found) == {"acl": {7}}
    hit = next(t for t in found.traces if t.repeat == 7)
    assert (hit.code, hit.layers.split()[2]) == ("authorization_failure", "F")
    assert hit.attribution.status == "hard violation"


def test_counterfeit_citation__fails_before_any_judge(tmp_path):
    rows = calm()
    rows[2] |= {"citations": [{"claim": 0, "id": "rule#99", "doc_id": "rule", "quote": "750"}]}
    found = rehearse(tmp_path, rows)
    assert broken(found) == {"fabricated": {2}, "invalid": {2}}
    hit = next(t for t in found.traces if t.repeat == 2)
    assert hit.layers == "P P P P P P F N"


@pytest.mark.parametrize(("limit", "said"), [(None, "median 2"), (4, "limit 4")])
def test_agent_loop__of_ten_steps(limit, said, tmp_path):
    rows = calm()
    rows[5] |= {"steps": 10}
    manifest = {} if limit is None else {"step_limit": limit}
    found = diagnose(traces.run(*rows, **manifest), suite=traces.suite(tmp_path))
    ((one,),) = found.odd.values()
    assert (one.repeat, one.what) == (5, f"10 steps, {said}")


def test_slow_reranker__is_the_stage_that_grew(tmp_path):
    slow = calm()
    for row in slow:
        row["timings"] = timings(**{**USUAL, "rerank": 900, "end_to_end": 1308})
    where = traces.suite(tmp_path)
    runs = [traces.run(*calm()), traces.run(*slow)]
    before, after = score(runs, suite=where, measures=["end_to_end"], names=["a", "b"]).runs
    assert operations.slower(before, after) == ("rerank", 880_000)
    assert operations.slower(before, before) is None
    first, *rest = operations.stages(after)
    assert (first.name, first.p95_us, first.traces) == ("rerank", 900_000, N)
    assert first.share == 900 / 1308
    assert [stage.name for stage in rest] == ["generate", "search"]
    assert operations.stages(before)[0].name == "generate"


def test_slow_stage__attempts_add_up_and_percentiles_are_by_nearest_rank(tmp_path):
    rows = calm()
    for i, row in enumerate(rows):
        row["timings"] = [*timings(rerank=i), *timings(rerank=i)]
    run = score(traces.run(*rows), suite=traces.suite(tmp_path), measures=["end_to_end"]).runs[0]
    (stage,) = operations.stages(run)
    assert stage.p95_us == 2000 * 11  # rank 12 = ceil(0.95 * 12) of 0, 2, ..., 22 ms


def test_command__shows_them_together(tmp_path):
    rows = calm()
    rows[5] |= {"steps": 10}
    rows[7] |= {"stages": [("bm25", traces.units("rule#1", "board#1"))]}
    where = traces.suite(tmp_path)
    path = tables.write_ipc(traces.run(*rows), tmp_path / "r.arrow")
    result = CliRunner().invoke(main, ["diagnose", str(path), "--suite", str(where)])
    assert result.exit_code == 0, result.output
    for text in ("hard.acl          VIOLATED", "r c en 5: 10 steps, median 2", "Time by stage"):
        assert text in result.stdout
