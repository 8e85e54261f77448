"""`ragcore sweep` as a user calls it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import sweep_world
from ragcore.cli import main

TOML = """
suite = "suite"
measures = ["R@5", "R@1", "nDCG@10", "RR"]

[production]
strategy = "hybrid"
candidate_k = 8
context_k = 3
ef = 40

[sweep]
candidate_k = [4, 16]
ladder = ["dense", "bm25", "hybrid", "hybrid-exact", "hybrid+reranker"]

[sweep.threshold]
channel = "dense"
values = ["off", 0.3, 0.6]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep_world.suite(tmp_path / "suite")
    (tmp_path / "s.toml").write_text(TOML)
    return tmp_path


def call(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


def test_sweep__prints_the_page_and_keeps_its_state_beside_the_file(folder):
    done = call("sweep", "s.toml")
    assert (folder / "s.sweep" / "rows").is_dir()
    assert done.stdout.startswith("sweep s: suite world (development (made for tests)), split test")
    assert "hybrid+reranker" in done.stdout
    assert "not evaluated: no reranker is declared" in done.stdout
    assert "prefix-of-depth-16, ef=40" in done.stdout
    again = call("sweep", "s.toml")
    assert again.stdout == done.stdout
    assert "kept from before: " in again.stderr


def test_sweep__writes_tables_and_the_curve(folder):
    lines = call("sweep", "s.toml", "-f", "jsonl", "--state", "st").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["row"] for row in rows} >= {"production", "dense candidate_k=4", "bm25"}
    exact = [row for row in rows if row["row"] == "hybrid-exact" and row["slice"] == "all"]
    assert {row["single_change"] for row in exact} == {True}
    call("sweep", "s.toml", "-f", "arrow", "--state", "st", "-o", "out.arrow")
    table = pa.ipc.open_file(pa.memory_map("out.arrow")).read_all()
    assert table.num_rows == len(rows)
    tsv = call("sweep", "s.toml", "-f", "tsv", "--state", "st", "--curve").stdout.splitlines()
    assert tsv[0].split("\t")[:4] == ["channel", "threshold", "split", "slice"]
    assert len(tsv) == 1 + 3 * 4
    page = call("sweep", "s.toml", "-f", "md", "--state", "st", "--curve").stdout
    assert page.startswith("| channel | threshold |")
    assert "## quality and cost" in call("sweep", "s.toml", "-f", "md", "--state", "st").stdout


def test_sweep__refuses_with_status_2_and_writes_nothing(folder):
    (folder / "s.toml").write_text(TOML.replace('"bm25", ', '"bm26", '))
    done = call("sweep", "s.toml", "-o", "out.txt", status=2)
    assert "unknown strategy 'bm26'" in done.stderr
    assert not (folder / "out.txt").exists()
    assert not (folder / "s.sweep").exists()
