"""What people have to settle and to audit; the review as a whole, and `ragcore judges`."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import reference_items as plain
import tables
from ragcore.cli import main
from ragcore.errors import UsageError
from ragcore.judges.items import items_of
from ragcore.judges.queue import QUEUE, queue_of
from ragcore.judges.review import review
from ragcore.judges.rows import REVIEW
from ragcore.judges.sample import SAMPLE, sample_of
from ragcore.judges.views import judges_of
from ragcore.judgments import read_judgments
from ragcore_kernels.audit_sample import AuditPlan, audit_sample

HUMAN = {"judge": "h", "rung": "human"}


def made(*rows, cases=None):
    return items_of(read_judgments(plain.table(*rows)), cases)


# --- the queue


def queued(*rows, cases=None):
    table = queue_of(made(*rows, cases=cases))
    table.validate(full=True)
    assert table.schema.equals(QUEUE)
    return table.to_pylist()


def test_queue__tells_all_that_was_said():
    rows = [
        {"relation": "cites", "evidence": ["x", "y"], "rationale": "says so", "score": 0.5,
         "judge_version": "1", "rubric": "r1", "prompt_sha256": "ab"},
        {"relation": "cites", "evidence": ["y", "x"], "verdict": "no", "judge": "k"},
        {"relation": "cites", "evidence": ["y", "x"], "verdict": "error", "judge": "l"},
        {"relation": "cites", "evidence": ["x"]},
    ]  # fmt: skip
    (row,) = queued(*rows)
    assert (row["case_id"], row["lang"], row["run"], row["repeat"]) == ("a", "en", "r", 0)
    assert (row["relation"], row["claim"], row["evidence"]) == ("cites", 0, ["x", "y"])
    assert (row["reason"], row["authority_needed"]) == ("verdicts-differ", "human")
    assert row["disposition"] is None
    first, second, third = row["verdicts"]
    assert first == {
        "verdict": "yes", "judge": "j", "judge_version": "1", "rung": "model",
        "adjudicated": False, "score": 0.5, "rationale": "says so", "rubric": "r1",
        "prompt_sha256": "ab",
    }  # fmt: skip
    assert (second["judge"], second["verdict"], second["rationale"]) == ("k", "no", None)
    assert third["verdict"] == "error"


SETTLED = {"adjudicated": True, "judge": "c", "rung": "human"}


@pytest.mark.parametrize(
    ("rows", "reason", "needed"),
    [
        ([{}, {"verdict": "no", "judge": "k"}], "verdicts-differ", "human"),
        ([{**HUMAN}, {**HUMAN, "verdict": "no", "judge": "k"}], "verdicts-differ", "domain"),
        ([{"verdict": "unclear"}], "unclear", "human"),
        ([{}, {"verdict": "unclear", "judge": "k"}], "unclear", "human"),
        ([{**HUMAN}, {**HUMAN, "judge": "k", "verdict": "no"}, {"verdict": "unclear"}],
         "verdicts-differ", "domain"),
        ([SETTLED, {**SETTLED, "verdict": "no", "judge": "d"}], "adjudications-differ", "domain"),
        ([{**SETTLED, "verdict": "unclear"}, {**HUMAN, "verdict": "unclear"}], "unclear",
         "domain"),
        ([{"rung": "authority"}, {"rung": "authority", "verdict": "no", "judge": "k"}],
         "verdicts-differ", "authority"),
    ],
)  # fmt: skip
def test_queue__says_why_and_who_settles(rows, reason, needed):
    (row,) = queued(*rows)
    assert (row["reason"], row["authority_needed"]) == (reason, needed)


def test_queue__a_case_that_needs_a_higher_rung():
    suite = pa.table({"case_id": ["a", "b"], "judge_required": ["domain", "domain"]})
    rows = [{}, {"case_id": "b", **HUMAN}, {"case_id": "b", **HUMAN, "verdict": "no"}]
    one, other = queued(*rows, cases=suite)
    assert (one["case_id"], one["reason"], one["authority_needed"]) == ("a", "judge-rank", "domain")
    assert (other["reason"], other["authority_needed"]) == ("verdicts-differ", "domain")


def test_queue__is_ordered_whatever_the_order_of_the_rows():
    rng = random.Random(2)
    rows = [
        {"case_id": c, "run": run, "claim": k, "verdict": v, "lang": lang}
        for c in ("b", "a") for run in ("s", "r", None) for lang in ("zh", "en")
        for k in (2, 0) for v in ("yes", "no")
    ]  # fmt: skip
    wanted = [(r["case_id"], r["run"], r["lang"], r["claim"]) for r in queued(*rows)]
    # A verdict that names no run bears on the items of both runs.
    assert wanted == [
        (c, run, lang, k) for c in "ab" for run in "rs" for lang in ("en", "zh") for k in (0, 2)
    ]
    rng.shuffle(rows)
    assert [(r["case_id"], r["run"], r["lang"], r["claim"]) for r in queued(*rows)] == wanted


def test_queue__of_nothing_is_empty():
    assert queued() == []
    assert queued({}, {"verdict": "no", **HUMAN}, {"claim": 1, "verdict": "error"}) == []


# --- the audit sample


def sampled(rows, cases, seed=7, plan=None):
    items = made(*rows, cases=cases)
    found = sample_of(items, judges_of(items.judgments), cases, seed, plan)
    found.table.validate(full=True)
    assert found.table.schema.equals(SAMPLE)
    return found


def test_sample__strata_come_from_suite_runs_and_judges():
    cases = pa.table(
        {"case_id": ["a", "b", "c", "d", "e", "f"],
         "consequence": ["High", None, "ordinary", None, None, None],
         "claims": [[{"high_stakes": h}] for h in (None, True, None, None, False, None)]}
    )  # fmt: skip
    rows = [
        {"case_id": "c"}, {"case_id": "c", "run": "s", "verdict": "no"},
        {"case_id": "d"}, {"case_id": "d", "verdict": "no", "judge": "k"},
        {"case_id": "d", "verdict": "no", **HUMAN},  # settled, and yet the judges differ
        {"case_id": "e"}, {"case_id": "e", "run": "s"}, {"case_id": "a", "verdict": "unclear"},
    ]  # fmt: skip
    found = sampled(rows, cases, plan=AuditPlan(least=6))
    strata = {row["case_id"]: row["stratum"] for row in found.table.to_pylist()}
    assert strata == {
        "a": "high-risk", "b": "high-risk", "c": "system-disagreement",
        "d": "judge-disagreement", "e": "rest", "f": "rest",
    }  # fmt: skip
    flags = {row["case_id"]: row for row in found.table.to_pylist()}
    assert flags["a"]["judges_disagree"]
    assert flags["d"]["high_risk"] is False
    assert found.shares[0] == ("high-risk", 2, 2)


def test_sample__is_the_seeded_one():
    names = [f"c{i}" for i in range(400)]
    rows = [{"case_id": c} for c in names]
    found = sampled(rows, None, seed=11)
    assert found.table["case_id"].to_pylist() == list(audit_sample(names, [3] * 400, 11).case_ids)
    assert found.table["high_risk"].null_count == found.table.num_rows == 40
    assert found.table["systems_disagree"].null_count == 40
    assert set(found.table["seed"].to_pylist()) == {11}
    assert any("no suite" in note for note in found.notes)
    assert any("one run" in note for note in found.notes)


def test_sample__whole_answers_are_what_systems_differ_in():
    rows = [
        {"case_id": c, "run": run, "claim": k, "verdict": v}
        for c, runs in (("a", ("yn", "ny")), ("b", ("yy", "yn")), ("c", ("yy", "yy")))
        for run, own in zip("rs", runs, strict=True)
        for k, v in enumerate({"y": "yes", "n": "no"}[w] for w in own)
    ]  # fmt: skip
    found = sampled(rows, None)
    apart = {r["case_id"]: r["systems_disagree"] for r in found.table.to_pylist()}
    assert apart == {"a": False, "b": True, "c": False}


# --- the review


def test_review__coverage_and_its_bounds():
    rows = [
        {"claim": 0}, {"claim": 1, "verdict": "no"}, {"claim": 2, "verdict": "unclear"},
        {"claim": 3, "verdict": "error"}, {"claim": 4, "verdict": "partial", **HUMAN},
        {"claim": 4, "adjudicated": True}, {"claim": 5, "run": "s"},
    ]  # fmt: skip
    whole, one, _ = review(plain.table(*rows)).coverage
    assert (whole.run, whole.n_items, one.run, one.n_items) == ("", 6, "r", 5)
    assert (one.decided, one.disputed, one.errors, one.adjudicated) == (3, 1, 1, 1)
    assert {rung: n for rung, n in one.rungs.items() if n} == {"model": 3}
    assert one.verdicts == {"yes": 2, "partial": 0, "no": 1, "contradicts": 0}
    assert one.share_yes == 2 / 3
    assert one.bounds == (2 / 5, 4 / 5)


def test_review__names_contradictory_adjudications():
    twice = [{**SETTLED, "judge": "c"}, {**SETTLED, "judge": "d", "verdict": "no"}]
    found = review(plain.table(*twice, {"claim": 1}))
    assert found.coverage[0].contradictory == 1
    (note,) = [n for n in found.notes if "contradict each other" in n]
    assert note.endswith("on 1 items: a en r entailed claim 0 (c: yes, d: no)")


def test_review__notes_what_does_not_fit(tmp_path):
    cases = pa.table({"case_id": ["a", "b", "c"]})
    suite = tables.write_suite(tmp_path / "s", cases)
    rows = [{"evidence": ["x"]}, {"evidence": ["x", "y"], "judge": "k"}, {"case_id": "z"}]
    found = review(plain.table(*rows), suite=suite)
    assert "1 verdicts on cases that the suite has not" in found.notes
    assert "2 of 3 cases of the suite have no verdict" in found.notes
    assert "1 items of the answer as a whole were judged on different chunks" in found.notes
    assert any("how good the judges are is not known" in note for note in found.notes)


def test_review__of_no_verdicts():
    found = review(plain.table())
    assert found.notes == ["no verdict in the files given"]
    assert found.table().num_rows == 0
    assert found.queue().num_rows == 0


def test_review__an_unknown_rung():
    with pytest.raises(UsageError, match="rung 'boss'"):
        review(plain.table({}), against="boss")


def test_review__judges_are_described():
    rows = [
        {"judge_version": "1", "prompt_sha256": "a"}, {"judge_version": "1", "claim": 1,
         "verdict": "error", "prompt_sha256": "b", "rubric": "x"}, {**HUMAN, "adjudicated": True},
    ]  # fmt: skip
    h, j = review(plain.table(*rows)).cards
    assert (h.name, h.rungs, h.n_adjudications, h.n_items) == ("h", ("human",), 1, 0)
    assert (j.name, j.n_verdicts, j.n_items, j.n_errors, j.prompts, j.rubrics) == (
        "j@1", 2, 2, 1, 2, 1,
    )  # fmt: skip


# --- the command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(4)
    rows = []
    for c in range(40):
        base = {"case_id": f"c{c:02}", "claim": None, "relation": "correct"}
        said = rng.choice(["yes", "no"])
        rows.append({**base, "judge": "m", "judge_version": "1", "verdict": said})
        rows.append(
            {**base, "judge": "m", "judge_version": "2", "verdict": rng.choice(["yes", said])}
        )
        if c < 30:
            rows.append({**base, **HUMAN, "verdict": rng.choice([said, "yes", "no"])})
    tables.write_ipc(plain.table(*rows), tmp_path / "judgments.arrow")
    return tmp_path


def call(*arguments, status=0):
    result = CliRunner().invoke(main, ["judges", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result


@pytest.mark.usefixtures("folder")
def test_command__tells_all_sections():
    asked = ["judgments.arrow", "--compare", "m@1", "m@2", "--sample", "s.tsv", "--seed", "1"]
    shown = call(*asked).stdout
    for title in (
        "judges:", "coverage, by rung:", "agreement:", "quality against human or above:",
        "share of yes, corrected by labels of human or above:", "sensitivity to the judge:",
        "flips:", "audit:", "gate statement: share of yes on correct, run r",
    ):  # fmt: skip
        assert title in shown
    assert "no -> yes" in shown
    assert "## agreement" in call(*asked, "-f", "md").stdout


@pytest.mark.usefixtures("folder")
def test_command__machines_read_one_row_a_statistic():
    asked = ["judgments.arrow", "--compare", "m@1", "m@2"]
    piped = pa.ipc.open_file(call(*asked, "-f", "arrow").stdout_bytes).read_all()
    assert piped.schema.equals(REVIEW)
    rows = [json.loads(line) for line in call(*asked, "-f", "jsonl").stdout.splitlines()]
    assert rows == piped.to_pylist()
    by = {(r["section"], r["judge"], r["against"], r["measure"]): r for r in rows}
    found = review("judgments.arrow", compare=("m@1", "m@2"))
    one = found.estimates[0]
    assert by["estimate", "m@1", "human", "ppi++"]["value"] == one.means["ppi++"].mean
    assert by["quality", "m@1", "human", "recall"]["numerator"] == found.quality[0].counts.tp
    flips = [r for r in rows if r["section"] == "flip"]
    assert len(flips) == found.sensitivity[0].n_flips > 0
    assert by["agreement", "m@1", "m@2", "ac1"]["value"] == found.agreement[3].ac1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["arrow", "jsonl", "tsv"])
def test_command__writes_queue_and_sample(form, folder):
    rows = [{}, {"verdict": "no", "judge": "k"}, {"claim": 1, "case_id": "b"}]
    tables.write_ipc(plain.table(*rows), folder / "two.arrow")
    files = folder / f"queue.{form}", folder / f"sample.{form}"
    call("two.arrow", "--queue", files[0], "--sample", files[1], "--seed", "5")
    if form == "arrow":
        queue, sample = (pa.ipc.open_file(f.read_bytes()).read_all() for f in files)
        assert queue.schema.equals(QUEUE)
        assert sample.schema.equals(SAMPLE)
    elif form == "jsonl":
        (row,) = [json.loads(line) for line in files[0].read_text().splitlines()]
        assert [v["judge"] for v in row["verdicts"]] == ["j", "k"]
        assert len(files[1].read_text().splitlines()) == 2
    else:
        head, row = (line.split("\t") for line in files[0].read_text().splitlines())
        assert head == QUEUE.names
        assert json.loads(row[head.index("verdicts")])[1]["judge"] == "k"
    assert (
        sorted(p.suffix for p in folder.iterdir() if p.name.startswith((".queue", ".sample"))) == []
    )


BAD = {
    "an unknown judge": (["--compare", "m@1", "m@3"], "did you mean m@"),
    "a judge of several versions": (["--compare", "m", "h"], "say one of m@1, m@2"),
    "a sample without a seed": (["--sample", "s.tsv"], "--sample FILE --seed N"),
    "a seed without a sample": (["--seed", "3"], "--sample FILE --seed N"),
    "a queue of no format": (["--queue", "q.xlsx"], "ends in .arrow, .jsonl or .tsv"),
    "a rung": (["--against", "boss"], "boss"),
    "no suite": (["--suite", "gone"], "no suite 'gone' found"),
    "a measure of no run": (["-m", "nuggets.all", "--compare", "m@1", "h"], "runs as well"),
    "no run": (["--run", "gone.arrow"], "gone.arrow"),
}


@pytest.mark.parametrize(("extra", "wanted"), BAD.values(), ids=BAD)
def test_command__refuses(extra, wanted, folder):
    before = set(folder.iterdir())
    result = call("judgments.arrow", "--queue", "out.jsonl", *extra, status=2)
    assert wanted in result.stderr
    assert result.stdout == ""
    assert set(folder.iterdir()) == before


def test_command__empty_files(folder):
    (folder / "empty.arrow").touch()
    result = call("empty.arrow", status=2)
    assert "empty.arrow" in result.stderr
    tables.write_ipc(plain.table(), folder / "none.arrow")
    assert "no verdict in the files given" in call("none.arrow").stderr
    assert "an unknown" not in call("none.arrow", "judgments.arrow").stderr


def test_review__bits_do_not_depend_on_the_order_of_the_rows(folder):
    table = pa.ipc.open_file((folder / "judgments.arrow").read_bytes()).read_all()
    order = np.random.default_rng(3).permutation(table.num_rows)
    compare = ("m@1", "m@2")
    first = review(table, compare=compare).table()
    second = review(table.take(pa.array(order)), compare=compare).table()
    assert first.equals(second)
