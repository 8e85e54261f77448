"""Cases about files and tables: text, Arrow, frames, and what the command prints."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import ragcore
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.errors import InputError

MEASURES = ["AP", "nDCG@10", "RR"]


@handles("RC-045")
def grades_must_be_integers(case: Case, folder: Path) -> None:
    run = {"1": {"a": 1.0}}
    lines = case["input"]["qrels"]
    for body, line in [("\n".join(lines), 1), *[("1 0 z 1\n" + each, 2) for each in lines]]:
        path = shapes.write_text(folder / "qrels.trec", body + "\n")
        with pytest.raises(InputError) as caught:
            ragcore.score(run, qrels=path, measures=["AP"])
        assert caught.value.line == line


@handles("RC-046")
def scores_must_be_numbers(case: Case, folder: Path) -> None:
    lines = case["input"]["run"]
    qrels = shapes.qrels_of(case["input"]["qrels"])
    for body, line in (("\n".join(lines), 1), ("\n".join(lines[::-1]), 3)):
        path = shapes.write_text(folder / "run.trec", body + "\n")
        with pytest.raises(InputError, match=r"(?i)nan") as caught:
            ragcore.score(path, qrels=qrels, measures=["AP"])
        assert caught.value.line == line
    run = shapes.run_of(lines)
    for form in (shapes.run_mapping, shapes.run_table):
        with pytest.raises(InputError, match=r"(?i)nan"):
            ragcore.score(form(run), qrels=qrels, measures=["AP"])
    word = shapes.write_text(folder / "word.trec", lines[1] + "\n1 Q0 c 2 high r\n")
    with pytest.raises(InputError, match="high") as caught:
        ragcore.score(word, qrels=qrels, measures=["AP"])
    assert caught.value.line == 2


@handles("RC-050")
def run_tags(case: Case, folder: Path) -> None:
    lines = case["input"]["run"]
    (first, second) = case["expected"]["rows"]
    qrels = {"1": {first[0]: 1, second[0]: 1}}
    tagged = shapes.write_text(folder / "tagged.trec", lines[0] + "\n")
    scores = ragcore.score(tagged, qrels=qrels, measures=["NumRet", "R@5"])
    assert scores.mean("NumRet") == 1
    assert scores.mean("R@5") == 0.5
    untagged = shapes.write_text(folder / "untagged.trec", "\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        ragcore.score(untagged, qrels=qrels, measures=["AP"])
    assert caught.value.line == 2


@handles("RC-056")
def ids_are_never_numbers(case: Case, folder: Path) -> None:
    given = case["input"]
    text = given["csv"].encode()
    strings = pa.csv.ConvertOptions(column_types={"qid": pa.string(), "doc_id": pa.string()})
    table = pa.csv.read_csv(io.BytesIO(text), convert_options=strings)
    scores = ragcore.score(table, qrels=given["qrels"], measures=given["metrics"])
    assert scores.mean("RR") == case["expected"]["RR"]
    guessed = pd.read_csv(io.BytesIO(text))
    assert guessed["qid"].dtype == np.int64
    with pytest.raises(InputError, match=r"'7' and '007' .zero padding. look alike"):
        ragcore.score(guessed, qrels=given["qrels"], measures=given["metrics"])
    with_more = {**given["qrels"], "8": {"10": 1}}
    both = pd.concat([guessed, pd.DataFrame({"qid": [8], "doc_id": [10], "score": [1.0]})])
    scores = ragcore.score(both, qrels=with_more, measures=given["metrics"])
    assert scores.mean("RR") == 0.5
    assert ("7", "007") in [pair[:2] for pair in scores.audits[0].near_misses]


IDS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "int64": pa.int64(),
}
NUMBERS = [pa.float64(), pa.float32(), pa.float16(), pa.int32(), pa.decimal128(6, 2)]
GRADES = [pa.int64(), pa.int8(), pa.int32(), pa.uint8(), pa.bool_()]


def as_type(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of that type, by whichever constructor makes it."""
    if kind == pa.float16():
        return pa.array(np.array(values, np.float16))
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(value) for value in values], kind)
    if pa.types.is_integer(kind):
        return pa.array([int(value) for value in values], kind)
    if pa.types.is_boolean(kind):
        return pa.array([bool(value) for value in values])
    return pa.array(values, kind)


@handles("RC-057")
def only_the_value_matters(case: Case, folder: Path) -> None:
    topics, docs = ["1", "1", "1", "2", "2"], ["10", "11", "12", "11", "13"]
    values, grades = [3, 2, 1, 2, 1], [0, 1, 1, 0, 1]

    def scored(run: Any, qrels: Any) -> list[Any]:
        return shapes.bits(ragcore.score(run, qrels=qrels, measures=MEASURES, names=["r"]))

    def table(ids: pa.DataType, name: str, numbers: list[int], kind: pa.DataType) -> pa.Table:
        columns = [as_type(topics, ids), as_type(docs, ids), as_type(numbers, kind)]
        return pa.table(columns, names=["qid", "doc_id", name])

    def plain(name: str, numbers: list[int], kind: pa.DataType) -> pa.Table:
        return table(pa.string(), name, numbers, kind)

    run, qrels = plain("score", values, pa.float64()), plain("rel", grades, pa.int64())
    expected = scored(run, qrels)
    assert {value for *_, value in expected} != {(0.0).hex()}
    for ids in IDS.values():
        assert scored(table(ids, "score", values, pa.float64()), qrels) == expected, ids
        assert scored(run, table(ids, "rel", grades, pa.int64())) == expected, ids
    for kind in NUMBERS:
        assert scored(plain("score", values, kind), qrels) == expected, kind
    for kind in GRADES:
        assert scored(run, plain("rel", grades, kind)) == expected, kind
    for frame in (
        lambda each: each.to_pandas().astype({"qid": "string", "doc_id": "string"}),
        lambda each: each.to_pandas(),
        pl.from_arrow,
    ):
        assert scored(frame(run), frame(qrels)) == expected, frame


@handles("RC-058")
def unicode_forms_of_ids(case: Case, folder: Path) -> None:
    given = case["input"]
    run, qrels = shapes.run_of(given["run"]), shapes.qrels_of(given["qrels"])
    for way in shapes.ways(run, qrels, folder):
        scores = ragcore.score(way.run, qrels=way.qrels, measures=["RR"])
        assert scores.mean("RR") == case["expected"]["RR"]
        (miss,) = scores.audits[0].near_misses
        (found,), (judged,) = run["t1"], qrels["t1"]
        assert tuple(miss[:2]) == (found[0], judged), way.name
        assert "NFC" in miss[2], way.name
        scores = ragcore.score(way.run, qrels=way.qrels, measures=["RR"], normalize_ids="nfc")
        assert scores.mean("RR") == case["expected"]["with_option_nfc"]["RR"]
    both = {"t1": {"caf\u00e9.md": 2.0, "cafe\u0301.md": 1.0}}
    with pytest.raises(InputError, match=r"(?i)nfc"):
        ragcore.score(both, qrels=qrels, measures=["RR"], normalize_ids="nfc")


@handles("RC-060")
def frames_written_by_polars(case: Case, folder: Path) -> None:
    rows = {
        "case_id": ["t1", "t2"],
        "ranked": [
            [{"id": "b", "score": 2.0}, {"id": "a", "score": 1.0}],
            [{"id": "c", "score": 1.0}],
        ],
    }
    qrels = {"case_id": ["t1", "t2"], "doc_id": ["a", "c"], "relevance": [1, 1]}
    flat = {"qid": ["t1", "t1", "t2"], "doc_id": ["b", "a", "c"], "score": [2.0, 1.0, 1.0]}
    files = {"nested.arrow": rows, "qrels.arrow": qrels, "flat.arrow": flat}
    for name, columns in files.items():
        pl.DataFrame(columns).write_ipc(folder / name)
    with pa.ipc.open_file(folder / "nested.arrow") as reader:
        assert reader.schema.field("case_id").type == pa.string_view()
        assert pa.types.is_large_list(reader.schema.field("ranked").type)
    grades = {"t1": {"a": 1}, "t2": {"c": 1}}
    expected = shapes.bits(
        ragcore.score(
            {"t1": {"b": 2.0, "a": 1.0}, "t2": {"c": 1.0}},
            qrels=grades,
            measures=MEASURES,
            names=["r"],
        )
    )
    for name in ("nested.arrow", "flat.arrow"):
        for judged in (grades, folder / "qrels.arrow"):
            scores = ragcore.score(folder / name, qrels=judged, measures=MEASURES, names=["r"])
            assert shapes.bits(scores) == expected, name


@handles("RC-063")
def dictionaries_that_differ(case: Case, folder: Path) -> None:
    first = pa.table({"query_id": ["t1", "t1"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    second = pa.table({"query_id": ["t2", "t2"], "doc_id": ["c", "a"], "score": [2.0, 1.0]})
    coded = [
        pa.table(
            [t["query_id"].dictionary_encode(), t["doc_id"].dictionary_encode(), t["score"]],
            names=t.column_names,
        )
        for t in (first, second)
    ]
    qrels = {"t1": {"b": 1}, "t2": {"a": 1}}
    with pa.ipc.new_stream(folder / "run.arrows", coded[0].schema) as writer:
        for table in coded:
            writer.write_table(table)
    for run in (folder / "run.arrows", pa.concat_tables(coded)):
        scores = ragcore.score(run, qrels=qrels, measures=["RR"])
        assert [scores.value("RR", topic) for topic in qrels] == [0.5, 0.5]
    runs = [{"t1": {"b": 1.0}}, {"t2": {"x": 1.0}}]
    scores = ragcore.score(runs, qrels=qrels, measures=["RR", "nDCG_exp@5"], no_relevant="na")
    for table in (scores.table(), scores.summary()):
        with pa.ipc.new_file(folder / "out.arrow", table.schema) as writer:
            writer.write_table(table)
        assert pa.ipc.open_file(folder / "out.arrow").read_all().equals(table)
    texts = [
        shapes.write_text(
            folder / f"{i}.trec", shapes.run_text({t: list(r.items()) for t, r in run.items()})
        )
        for i, run in enumerate(runs)
    ]
    judged = shapes.write_text(folder / "qrels.trec", shapes.qrels_text(qrels))
    out = folder / "scores.arrow"
    done = shapes.cli(
        "score",
        *texts,
        "--qrels",
        judged,
        "-m",
        "RR",
        "--per-case",
        "-f",
        "arrow",
        "-o",
        out,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(pa.ipc.open_file(out).read_all()["value"].to_pylist()) == [0.0, 0.0, 0.0, 1.0]


@handles("RC-064")
def empty_and_broken_files(case: Case, folder: Path) -> None:
    qrels = {"t1": {"a": 1}}
    judged = shapes.write_text(folder / "qrels.trec", shapes.qrels_text(qrels))
    whole = shapes.run_rows([("t1", "a", 1.0)])
    for name, batches in (
        ("none", []),
        ("zero", whole.slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], whole.schema)]),
        ("whole", whole.to_batches()),
    ):
        with pa.ipc.new_file(folder / f"{name}.arrow", whole.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    (folder / "zero-byte.arrow").write_bytes(b"")
    (folder / "truncated.arrow").write_bytes((folder / "whole.arrow").read_bytes()[:-10])

    def command(name: str, *more: str) -> Any:
        out = folder / f"{name}.out"
        path = folder / f"{name}.arrow"
        done = shapes.cli(
            "score", path, "--qrels", judged, "-m", "AP", "-o", out, *more, cwd=folder
        )
        assert out.exists() == (done.returncode == 0)
        return done

    assert command("whole").returncode == 0
    for name in ("none", "zero"):
        with pytest.raises(InputError):
            ragcore.score(folder / f"{name}.arrow", qrels=qrels, measures=["AP"])
        scores = ragcore.score(
            folder / f"{name}.arrow", qrels=qrels, measures=["AP"], allow_empty=True
        )
        assert scores.audits[0].missing_in_run == ["t1"]
        assert command(name).returncode == 2
        assert command(name, "--allow-empty").returncode == 0
    for name in ("zero-byte", "truncated"):
        for options in ({}, {"allow_empty": True}):
            with pytest.raises(InputError, match=f"{name}.arrow"):
                ragcore.score(folder / f"{name}.arrow", qrels=qrels, measures=["AP"], **options)
        done = command(name)
        assert done.returncode == 2
        assert f"{name}.arrow" in done.stderr


@handles("RC-066")
def nulls_are_refused(case: Case, folder: Path) -> None:
    rows, qrels = case["input"]["rows"], case["input"]["qrels"]
    fine = ["t1", "c", 0.5]
    for given, row in ((rows, 2), ([rows[0], fine, rows[2]], 3), ([[None, "a", 1.0]], 1)):
        with pytest.raises(InputError, match="null") as caught:
            ragcore.score(shapes.run_rows(given), qrels=qrels, measures=["AP"])
        assert caught.value.row == row
    kind = pa.list_(pa.struct([("id", pa.string()), ("score", pa.float64())]))
    for item in ({"id": "b", "score": None}, {"id": None, "score": 1.0}):
        lists = pa.array([[{"id": "a", "score": 2.0}, item]], kind)
        with pytest.raises(InputError, match="null"):
            ragcore.score(
                pa.table({"case_id": ["t1"], "ranked": lists}), qrels=qrels, measures=["AP"]
            )
    with pytest.raises(InputError, match="null"):
        ragcore.score(
            {"t1": {"b": 1.0}}, qrels=shapes.qrels_rows([["t1", "b", None]]), measures=["AP"]
        )


@handles("RC-140")
def no_value_is_null_in_json(case: Case, folder: Path) -> None:
    qrels = shapes.write_text(folder / "qrels.trec", "t1 0 a 2000\nt1 0 b 1\nt2 0 a 0\n")
    run = shapes.write_text(folder / "run.trec", "t1 Q0 a 1 1 r\nt2 Q0 a 1 1 r\n")
    plain = ("score", run, "--qrels", qrels, "-m", "nDCG_exp@10", "-f", "jsonl")
    done = shapes.cli(*plain, "--per-case", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = {row["case_id"]: row for row in shapes.json_lines(done.stdout)}
    assert (rows["t1"]["value"], rows["t1"]["state"]) == (None, "na")
    assert (rows["t2"]["value"], rows["t2"]["state"]) == (0.0, "ok")
    (line,) = shapes.json_lines(shapes.cli(*plain, cwd=folder).stdout)
    assert (line["n_ok"], line["n_na"]) == (1, 1)
