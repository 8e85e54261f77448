"""Cases about ties, duplicates, topics and reports that need more than one plain scoring."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pytest

import ragcore
import reference
from conformance import shapes
from conformance.cases_fusion import check_fused_topics
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.errors import InputError


@handles("RC-007")
def ties_do_not_depend_on_row_order(case: Case, folder: Path) -> None:
    given = case["input"]
    qrels = shapes.qrels_of(given["qrels"])
    rows = list(given["run"])
    shuffle = random.Random(7)
    seen = set()
    for repeat in range(given["repeat"]):
        for way in shapes.ways(shapes.run_of(rows), qrels, folder):
            scores = ragcore.score(
                way.run, qrels=way.qrels, measures=given["metrics"], threads=1 + repeat % 2
            )
            seen.add(tuple(scores.mean(name) for name in given["metrics"]))
        shuffle.shuffle(rows)
    (values,) = seen
    for name, value in zip(given["metrics"], values, strict=True):
        assert shapes.near(value, case["expected"][name])


@handles("RC-008")
def self_match_is_dropped_by_id(case: Case, folder: Path) -> None:
    given = case["input"]
    topic = given["query_id"]
    run, qrels = {topic: [tuple(row) for row in given["run"]]}, {topic: given["qrels"]}
    for rows in (run, {topic: run[topic][::-1]}):
        for way in shapes.ways(rows, qrels, folder):
            scores = ragcore.score(
                way.run, qrels=way.qrels, measures=given["metrics"], **given["options"]
            )
            for name, value in case["expected"].items():
                assert shapes.near(scores.mean(name), value), (way.name, name)


@handles("RC-016")
def custom_gains_below_one(case: Case, folder: Path) -> None:
    given = case["input"]
    gains = given["options"]["gains"]
    pairs = ",".join(f"{grade}={gain}" for grade, gain in gains.items())
    names = [f"nDCG(gains={{{pairs.replace('=', ':')}}})", f"ndcg_{pairs}"]
    for way in shapes.ways(shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"]), folder):
        scores = ragcore.score(way.run, qrels=way.qrels, measures=names)
        for name in names:
            assert shapes.near(scores.mean(name), case["expected"]["nDCG"]), (way.name, name)


@handles("RC-024")
def no_state_survives_an_evaluation(case: Case, folder: Path) -> None:
    given = case["input"]
    names = ["nDCG@2", "nDCG@10", "nDCG@100", "P@10"]
    qrels = shapes.qrels_of(given["qrels"])
    run_a = shapes.run_of(given["run"])
    run_b = {"t1": [("zz", 3.0), ("a", 2.0)], "t3": [("c", 1.0)]}
    seen = []
    for run in (run_a, run_a, run_b, run_a):
        for way in shapes.ways(run, qrels, folder):
            scores = ragcore.score(way.run, qrels=way.qrels, measures=names, names=["A"])
            if run is run_a:
                seen.append(shapes.bits(scores))
    assert all(each == seen[0] for each in seen)


@handles("RC-028")
def duplicate_documents(case: Case, folder: Path) -> None:
    given = case["input"]
    expected = case["expected"]["with_dedup_first"]
    text = "".join(f"{topic} Q0 {doc} 1 {value} sys\n" for topic, doc, value in given["run_rows"])
    path = shapes.write_text(folder / "run.trec", text)
    qrels = shapes.write_text(folder / "qrels.trec", shapes.qrels_text(given["qrels"]))
    for run in (path, shapes.run_rows(given["run_rows"])):
        with pytest.raises(InputError, match=r"\bg\b.*t1|t1.*\bg\b"):
            ragcore.score(run, qrels=given["qrels"], measures=given["metrics"])
        scores = ragcore.score(
            run, qrels=given["qrels"], measures=given["metrics"], duplicates="first"
        )
        for name, value in expected.items():
            assert shapes.near(scores.mean(name), value), name
    plain = ("score", path, "--qrels", qrels, "-m", "AP", "-f", "jsonl")
    refused = shapes.cli(*plain, cwd=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = shapes.json_lines(shapes.cli(*plain, "--duplicates", "first", cwd=folder).stdout)
    assert shapes.near(line["mean"], expected["AP"])


@handles("RC-029")
def duplicate_judgements(case: Case, folder: Path) -> None:
    given = case["input"]
    run = shapes.run_mapping(shapes.run_of(given["run"]))
    rows = given["qrels_rows"]
    conflicting = [*rows[:1], ["t1", "g", 2], *rows[2:]]

    def text(lines: list[list[object]], name: str) -> Path:
        body = "".join(f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in lines)
        return shapes.write_text(folder / name, body)

    for qrels in (shapes.qrels_rows(rows), text(rows, "same.trec")):
        scores = ragcore.score(run, qrels=qrels, measures=given["metrics"])
        for name in given["metrics"]:
            expected = case["expected"]["identical_duplicates"][name]
            assert shapes.near(scores.mean(name), expected), name
        assert len(scores.audits[0].warnings) == 1
    for qrels in (shapes.qrels_rows(conflicting), text(conflicting, "conflict.trec")):
        with pytest.raises(InputError, match=r"\bg\b"):
            ragcore.score(run, qrels=qrels, measures=given["metrics"])


@handles("RC-030")
def duplicate_gold_entries(case: Case, folder: Path) -> None:
    given = case["input"]
    qrels = shapes.qrels_rows([("q", each, 1) for each in given["expected_ids"]])
    ids = [given["retrieved_ids"]]
    run = pa.table({"case_id": ["q"], "ranked": pa.array(ids, pa.list_(pa.string()))})
    names = {"R": "R", "hit_rate": f"Success@{len(given['retrieved_ids'])}"}
    scores = ragcore.score(run, qrels=qrels, measures=list(names.values()))
    for key, name in names.items():
        assert shapes.near(scores.mean(name), case["expected"][key]), name


@handles("RC-032")
def topics_that_do_not_match(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    policies = {"all judged topics": "judged", "intersection": "common"}
    for way in shapes.ways(shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"]), folder):
        for words, topics in policies.items():
            scores = ragcore.score(way.run, qrels=way.qrels, measures=["AP"], topics=topics)
            assert shapes.near(scores.mean("AP"), expected[words]["AP"]), (way.name, words)
            assert shapes.n_ok(scores, "AP") == expected[words]["n"], (way.name, words)
            for group, topics_of_group in expected["report"].items():
                assert getattr(scores.audits[0], group) == topics_of_group, (way.name, group)


@handles("RC-034")
def topic_without_judgements(case: Case, folder: Path) -> None:
    given = case["input"]
    run = shapes.run_mapping(shapes.run_of(given["run"]))
    without = {topic: grades for topic, grades in given["qrels"].items() if grades}
    scores = ragcore.score(run, qrels=given["qrels"], measures=["AP"])
    for topic in without:
        value = scores.value("AP", topic)
        assert shapes.near(value, case["expected"]["per_query"][topic])
        assert value == ragcore.score(run, qrels=without, measures=["AP"]).value("AP", topic)
    assert scores.value("AP", "t2") is None
    assert scores.audits[0].no_judgements == ["t2"]
    assert shapes.near(scores.mean("AP"), math.fsum((1.0, 0.5833333333333333)) / 2)


@handles("RC-035")
def no_topic_in_common(case: Case, folder: Path) -> None:
    given = case["input"]
    run, qrels = shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"])
    for way in shapes.ways(run, qrels, folder):
        with pytest.raises(InputError, match="in common") as refused:
            ragcore.score(way.run, qrels=way.qrels, measures=["AP"])
        assert "'101' and '101.A' look alike" in str(refused.value), way.name
        scores = ragcore.score(way.run, qrels=way.qrels, measures=["AP"], allow_empty=True)
        assert scores.mean("AP") == case["expected"]["AP(all judged)"]
    done = shapes.cli(
        "score", folder / "run.trec", "--qrels", folder / "qrels.trec", "-m", "AP", cwd=folder
    )
    assert done.returncode != 0
    assert "in common" in done.stderr


@handles("RC-036")
def empty_list_scores_zero(case: Case, folder: Path) -> None:
    given = case["input"]
    names = given["metrics"]
    for way in shapes.ways(shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"]), folder):
        scores = ragcore.score(way.run, qrels=way.qrels, measures=names, **way.options)
        assert [scores.mean(name) for name in names] == [case["expected"][name] for name in names]
        assert shapes.n_ok(scores, names[0]) == case["expected"]["n"], way.name


@handles("RC-038")
def undefined_is_not_zero(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    names = [f"i{number}" for number in range(len(given["items"]))]
    run = {
        name: dict.fromkeys(item["retrieved"], 1.0)
        for name, item in zip(names, given["items"], strict=True)
    }
    for judged in ({}, {"b": 0}):  # no judgement at all; nothing but a non-relevant one
        qrels = {
            name: dict.fromkeys(item["gold"], 1) or judged
            for name, item in zip(names, given["items"], strict=True)
        }
        scores = ragcore.score(run, qrels=qrels, measures=["R"], no_relevant="na")
        assert [scores.value("R", name) for name in names] == expected["per_item"]
        assert scores.mean("R") == expected["mean_defined"]
        assert shapes.n_ok(scores, "R") == expected["n_defined"]
        undefined = [name for name in names if scores.state("R", name) != "ok"]
        assert len(undefined) == expected["n_undefined"]


WITHOUT_JIT = """
import sys
sys.path.insert(0, sys.argv[1])
import ragcore
qrels = {f"t{i}": {"a": 1, "b": 2, "c": 0} for i in (0, 2, 4)}
run = {f"t{i}": {"c": 3.0, "b": 2.0, "x": 2.0, "a": 1.0} for i in range(6)}
names = ["AP", "nDCG@10", "RR", "P@5", "Bpref", "infAP", "ERR@3"]
scores = ragcore.score(run, qrels=qrels, measures=names)
for topic in qrels:
    print(topic, [scores.value(name, topic).hex() for name in names])
print(scores.audits[0].not_judged)
"""


@handles("RC-039")
def same_numbers_without_the_jit(case: Case, folder: Path) -> None:
    outputs = []
    for setting in ("0", "1"):
        done = shapes.python(WITHOUT_JIT, folder, folder, NUMBA_DISABLE_JIT=setting)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    extra = [t for t in case["input"]["run_topics"] if t not in case["input"]["qrels_topics"]]
    assert outputs[0].splitlines()[-1] == str(extra)


@handles("RC-040")
def runs_with_different_topics(case: Case, folder: Path) -> None:
    """Scoring takes the judged topics, fusion those of both runs."""
    runs = [shapes.run_of(raw) for raw in case["input"]["runs"]]
    qrels = {"t1": {"a": 1}, "t2": {"b": 1}}
    names = ["both", "one"]
    for form in (shapes.run_mapping, shapes.run_table, shapes.nested_table):
        scores = ragcore.score(
            [form(run) for run in runs], qrels=qrels, measures=["AP"], names=names
        )
        for name, run, audit in zip(names, runs, scores.audits, strict=True):
            for topic in case["expected"]["fused_topics"]:
                assert scores.value("AP", topic, name) == float(topic in run)
            assert audit.missing_in_run == [topic for topic in qrels if topic not in run]
        assert scores.mean("AP", "both") == 1.0
        assert scores.mean("AP", "one") == 0.5
    check_fused_topics(case)


@handles("RC-041")
def rounding_belongs_to_the_printer(case: Case, folder: Path) -> None:
    values, depth = case["input"]["values"], 500_000
    rows = [
        (topic, f"d{number}", -float(number))
        for topic, value in zip(("t1", "t2"), values, strict=True)
        for number in range(round(value * depth))
    ]
    run = shapes.run_rows(rows)
    qrels = shapes.qrels_rows([(topic, doc, 1) for topic, doc, _ in rows])
    name = f"P@{depth}"
    scores = ragcore.score(run, qrels=qrels, measures=[name])
    for topic, value in zip(("t1", "t2"), values, strict=True):
        assert shapes.near(scores.value(name, topic), value, case["tolerance"])
    mean = case["expected"]["mean"]
    assert shapes.near(scores.mean(name), mean, case["tolerance"])
    files = {"run.arrow": run, "qrels.arrow": qrels}
    for file, table in files.items():
        with pa.ipc.new_file(folder / file, table.schema) as writer:
            writer.write_table(table)
    plain = ("score", folder / "run.arrow", "--qrels", folder / "qrels.arrow", "-m", name)
    (line,) = shapes.json_lines(shapes.cli(*plain, "-f", "jsonl", cwd=folder).stdout)
    assert shapes.near(line["mean"], mean, case["tolerance"])
    assert f"{mean:.4f}" in shapes.cli(*plain, cwd=folder).stdout.split()
    assert reference.aggregate("AP", values) == mean
