"""What a sweep keeps: a killed one goes on, a changed one computes what the change reaches."""

from __future__ import annotations

import json
import signal

import pytest

import ragcore
import sweep_world
from conformance.shapes import python
from ragcore.errors import InputError
from ragcore.experiments.state import State, digest, slug

KILLED = """
import json, os, signal, sys
import ragcore

given = json.loads(open(sys.argv[1]).read())

def progress(stage, done, total):
    if stage == "rows" and done == 2:  # production and two rows are kept
        os.kill(os.getpid(), signal.SIGKILL)

ragcore.sweep(given, state=sys.argv[2], progress=progress)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


def plain(found):
    return json.loads(json.dumps([found.about, found.baseline, found.rows, found.curve]))


def test_killed__goes_on_where_it_was_and_ends_the_same(folder, tmp_path):
    given = sweep_world.sweep(folder)
    (tmp_path / "given.json").write_text(json.dumps(given))
    state = tmp_path / "state"
    done = python(KILLED, tmp_path, tmp_path / "given.json", state)
    assert done.returncode == -signal.SIGKILL, done.stderr
    rows = {p: p.stat().st_mtime_ns for p in (state / "rows").iterdir()}
    wide = {p: p.stat().st_mtime_ns for p in (state / "recordings").iterdir()}
    assert 2 <= len(rows) <= 3  # production, and the rows that were done
    assert len(wide) == 1
    seen = []
    found = ragcore.sweep(given, state=state, progress=lambda *a: seen.append(a))
    assert {p: p.stat().st_mtime_ns for p in rows} == rows  # none was written again
    assert {p: p.stat().st_mtime_ns for p in wide} == wide
    assert found.kept["rows"] == len(rows)
    assert not any(p.name.endswith(".part") for p in state.rglob("*"))
    whole = ragcore.sweep(given, state=state)  # everything is kept now
    assert plain(whole) == plain(found)
    for p in (state / "rows").iterdir():
        if p not in rows:
            p.unlink()
    again = ragcore.sweep(given, state=state)  # as if it had been killed there
    assert plain(again) == plain(found)
    assert again.kept["rows"] == len(rows)


def test_changed__computes_only_what_the_change_reaches(folder, tmp_path):
    state = tmp_path / "state"
    given = sweep_world.sweep(folder)
    first = ragcore.sweep(given, state=state)
    n_rows = sum(row["state"] == "evaluated" for row in first.rows) + 1
    given["sweep"]["context_k"] = [3, 5, 8]
    given["deviation"]["rrf-10"] = {"rrf_k": 11}
    second = ragcore.sweep(given, state=state)
    assert second.kept["recordings"] == 2
    assert second.kept["rows"] == n_rows - 1  # rrf-10 is another row now, and one is new
    assert second.kept["curves"] == 1
    given["plan"] = {"primary": ["nDCG@10"]}  # all judgements, no search
    third = ragcore.sweep(given, state=state)
    assert third.kept["rows"] == 0
    assert third.kept["recordings"] == 2
    given["sweep"]["candidate_k"] = [5, 30]  # wider: another recording
    fourth = ragcore.sweep(given, state=state)
    assert fourth.kept["recordings"] == 0
    assert fourth.kept["index"] == 2
    assert fourth.rows[0]["depth"] == 30


def test_changed__a_suite_that_is_another_one_is_searched_anew(tmp_path):
    state = tmp_path / "state"
    for seed in (3, 4):
        folder = sweep_world.suite(tmp_path / "suite", seed=seed)
        found = ragcore.sweep(sweep_world.sweep(folder), state=state)
        assert not any(found.kept.values())


def test_damaged__a_step_says_so(folder, tmp_path):
    state = tmp_path / "state"
    ragcore.sweep(sweep_world.sweep(folder), state=state)
    victim = next(p for p in (state / "rows").iterdir() if "rrf-10" in p.name)
    victim.write_text("{")
    with pytest.raises(InputError, match="what a sweep has kept"):
        ragcore.sweep(sweep_world.sweep(folder), state=state)


def test_state__names_are_short_plain_and_distinct(tmp_path):
    assert slug("a/b c:d=1.5+x") == "a_b_c_d=1.5+x"
    assert slug("重排") == "step"
    assert digest("a", 1) != digest("a", 2)
    held = State(tmp_path / "s")

    def broken(part):
        (part / "half").write_text("x")
        raise KeyError("half")

    with pytest.raises(KeyError):
        held.directory("suites", "a", "k", broken)
    assert list((tmp_path / "s" / "suites").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a folder for state"):
        State(tmp_path / "file")
