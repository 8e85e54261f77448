"""The command line: formats, exit statuses, examples that run, pipes, and what it imports."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from click.testing import CliRunner

import indexes
import sweep_world
import tables
from conformance.shapes import environment, json_lines
from ragcore import schema, score
from ragcore.analysis import Analyzer
from ragcore.cli import main
from ragcore.diagnosis.first import MEASURES
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore.report.table import whole_file, write_arrow
from ragcore.search import search
from ragcore.search_settings import Settings

ROOT = Path(__file__).resolve().parents[2]
RUN = "q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\nq2 Q0 b 1 1.0 t\n"
QRELS = "q1 0 b 1\nq2 0 b 2\nq3 0 a 0\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.trec").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


def call(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


def scored(*arguments, status=0):
    return call("score", "run.trec", "--qrels", "qrels.txt", *arguments, status=status)


# --- formats


@pytest.mark.usefixtures("folder")
def test_jsonl__has_the_columns_of_the_schema_at_full_precision():
    rows = json_lines(scored("-f", "jsonl", "-m", "RR", "-m", "nDCG").stdout)
    assert [list(row) for row in rows] == [schema.SUMMARY.names] * 2
    assert rows[0]["mean"] == 0.5
    cases = json_lines(scored("-f", "jsonl", "-m", "RR", "--per-case").stdout)
    assert [list(row) for row in cases] == [schema.SCORES.names] * 3
    assert [row["value"] for row in cases] == [0.5, 1.0, 0.0]


@pytest.mark.usefixtures("folder")
def test_jsonl__never_holds_nan():
    rows = json_lines(
        scored("-f", "jsonl", "-m", "Judged@5", "-m", "RR", "--no-relevant", "na").stdout
    )
    assert (rows[0]["n_na"], rows[1]["n_na"]) == (1, 1)
    for row in json_lines(scored("-f", "jsonl", "-m", "Judged@5", "--per-case").stdout):
        assert row["value"] is None or 0 <= row["value"] <= 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("per_case", [False, True])
def test_arrow__has_the_schema_on_stdout_and_in_a_file(per_case):
    extra = ["--per-case"] if per_case else []
    wanted = schema.SCORES if per_case else schema.SUMMARY
    piped = pa.ipc.open_file(scored("-f", "arrow", *extra).stdout_bytes).read_all()
    scored("-f", "arrow", "-o", "out.arrow", *extra)
    stored = pa.ipc.open_file(pa.memory_map("out.arrow")).read_all()
    for table in (piped, stored):
        assert table.schema.equals(wanted)
        table.validate(full=True)
    assert piped.equals(stored)


@pytest.mark.usefixtures("folder")
def test_tsv__has_every_column_at_four_places():
    lines = [line.split("\t") for line in scored("-f", "tsv", "-m", "RR").stdout.splitlines()]
    assert lines[0] == schema.SUMMARY.names
    row = dict(zip(*lines, strict=True))
    assert (row["mean"], row["numerator"], row["n_cases"], row["delta"]) == (
        "0.5000",
        "1.5000",
        "3",
        "",
    )


@pytest.mark.usefixtures("folder")
def test_table_and_md__are_for_people():
    head, row = scored("-m", "RR").stdout.splitlines()
    assert head.split() == ["measure", "value", "n/d", "95%", "exact", "na", "missing", "note"]
    assert row.split()[:2] == ["RR", "0.5000"]
    assert "90% exact" in scored("-m", "RR", "--level", "0.9").stdout
    lines = scored("-m", "RR", "-f", "md").stdout.splitlines()
    assert lines[1].count("---") == lines[0].count("|") - 1 == lines[2].count("|") - 1


@pytest.mark.usefixtures("folder")
def test_stdout__has_data_only_and_no_colour():
    result = scored("-m", "RR")
    assert "warning: 1 judged case(s) missing in the run" in result.stderr
    assert "policy: topics judged, no-relevant zero" in result.stderr
    assert "\x1b" not in result.output


def test_suite__is_named_with_its_kind(folder):
    cases = pa.table({"case_id": ["q1", "q2"], "evidence": [tables.evidence("b")] * 2})
    tables.write_suite(folder / "s", cases, 'name = "little"\nkind = "made for this test"\n')
    result = call("score", "run.trec", "--suite", "s", "-m", "RR")
    assert "suite little: made for this test" in result.stderr


# --- options


@pytest.mark.usefixtures("folder")
def test_score__several_runs_slices_and_policies():
    shutil.copy("run.trec", "other.trec")
    asked = ["--topics", "common", "--by", "case_id", "-f", "jsonl", "--max-depth", 1, "-m", "RR"]
    result = call("score", "run.trec", "other.trec", "--qrels", "qrels.txt", *asked)
    rows = json_lines(result.stdout)
    assert [(r["run"], r["slice"], r["mean"]) for r in rows] == [
        (run, part, value) for run in ("run", "other")
        for part, value in (("all", 0.5), ("case_id=q1", 0.0), ("case_id=q2", 1.0))
    ]  # fmt: skip


def each_command():
    yield [], main
    for name, command in main.commands.items():
        yield [name], command


@pytest.mark.parametrize(
    ("path", "command"),
    list(each_command()),
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_help__everywhere_with_an_example(path, command):
    short, long = call(*path, "-h").stdout, call(*path, "--help").stdout
    assert short == long
    assert "Example:" in long
    for option in command.params:
        if isinstance(option, click.Option) and option.name != "help":
            assert option.help, f"{path} {option.name} has no help"


def examples():
    for path, command in each_command():
        text = call(*path, "--help").stdout
        for line in re.findall(r"^\s+ragcore (.*)$", text, re.MULTILINE):
            name = f"{' '.join(path) or 'ragcore'}: {line.strip()}"
            yield pytest.param(shlex.split(line), id=name)
        assert "ragcore " in (command.help or "")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The indexes and files that examples name."""
    place = tmp_path_factory.mktemp("searched")
    rng = np.random.default_rng(6)
    vectors = {f"c{i:03}": rng.normal(size=4) for i in range(120)}
    indexes.make(place / "vectors.index", vectors=vectors, M=32)
    table = indexes.chunk_table({"old-chunk": "an old rule", "kept": "another rule"})
    build(read_chunks(table), place / "small.index", Options(Analyzer()))
    build(read_chunks(ROOT / "data/ka4/chunks.arrow"), place / "ka4.index", Options(Analyzer()))
    feather.write_feather(indexes.chunk_table({"new": "text"}), str(place / "more.arrow"))
    asked = {f"q{i:02}": rng.normal(size=4) for i in range(60)}
    cases = indexes.ask(vectors=asked, lang=["en", "zh"] * 30)
    feather.write_feather(cases.table, str(place / "cases.arrow"))
    index = open_index(place / "vectors.index")
    for strategy, name in (("dense", "hnsw"), ("dense-exact", "exact")):
        found = search(index, cases, Settings(strategy, 10, ef=120))
        with whole_file(place / f"{name}.arrow") as file:
            write_arrow(found.table, file)
    runs = [ROOT / "data/ka4/runs" / f"{name}.arrow" for name in ("baseline", "filtered")]
    with whole_file(place / "scores.arrow") as file:
        write_arrow(score(runs, suite=ROOT / "data/ka4", measures=MEASURES).table(), file)
    sweep_world.suite(place / "world")
    (place / "sweep.toml").write_text('suite = "world"\n[sweep]\ncandidate_k = [5]\n')
    return place


@pytest.mark.parametrize("words", list(examples()))
def test_help__examples_run(words, folder, searched):
    for name in ("ka4", "mosaic"):
        shutil.copytree(ROOT / "data" / name, folder / "data" / name)
    shutil.copytree(searched, folder, dirs_exist_ok=True)
    arguments = []
    for word in words:
        found = sorted(map(str, folder.glob(word))) if "*" in word and "/" in word else []
        arguments += [os.path.relpath(f, folder) for f in found] or [word]
    assert call(*arguments).output


def test_explain__one_and_all():
    assert "nDCG = DCG / DCG of the best order" in call("explain", "nDCG@10").stdout
    assert len(call("explain").stdout.splitlines()) > 25


# --- what goes wrong: exit 2, nothing on stdout


BAD = {
    "no such run": ["score", "absent", "--qrels", "qrels.txt"],
    "no such qrels": ["score", "run.trec", "--qrels", "absent"],
    "nothing to judge by": ["score", "run.trec"],
    "both": ["score", "run.trec", "--qrels", "qrels.txt", "--suite", "."],
    "no suite": ["score", "run.trec", "--suite", "."],
    "broken run": ["score", "qrels.txt", "--qrels", "qrels.txt"],
    "broken qrels": ["score", "run.trec", "--qrels", "run.trec"],
    "empty": ["score", "empty", "--qrels", "qrels.txt"],
    "unknown measure": ["score", "run.trec", "--qrels", "qrels.txt", "-m", "nosuch"],
    "unknown slice": ["score", "run.trec", "--qrels", "qrels.txt", "--by", "nosuch"],
    "unknown option": ["score", "run.trec", "--nosuch"],
    "unknown format": ["score", "run.trec", "--qrels", "qrels.txt", "-f", "xml"],
    "unknown command": ["nosuch"],
    "no argument": ["score"],
    "bad level": ["score", "run.trec", "--qrels", "qrels.txt", "--level", "95"],
    "bad depth": ["score", "run.trec", "--qrels", "qrels.txt", "--max-depth", "0"],
    "no folder": ["score", "run.trec", "--qrels", "qrels.txt", "-o", "absent/out"],
    "folder": ["score", "run.trec", "--qrels", "qrels.txt", "-o", "."],
    "explain": ["explain", "nosuch"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_errors__exit_2_and_print_nothing(arguments, folder):
    (folder / "empty").touch()
    before = set(folder.iterdir())
    result = call(*arguments, status=2)
    assert result.stdout == ""
    assert "rror: " in result.stderr
    assert "Traceback" not in result.stderr
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_errors__leave_the_old_output():
    Path("out.jsonl").write_text("old")
    scored("-m", "nosuch", "-o", "out.jsonl", status=2)
    assert Path("out.jsonl").read_text() == "old"
    scored("-m", "RR", "-f", "jsonl", "-o", "out.jsonl")
    assert json.loads(Path("out.jsonl").read_text())["measure"] == "RR"
    assert sorted(p.name for p in Path().iterdir()) == ["out.jsonl", "qrels.txt", "run.trec"]


# --- processes


def shell(text, folder):
    env = environment(PY=sys.executable)
    return subprocess.run(
        ["bash", "-c", text], env=env, cwd=folder, capture_output=True, text=True, check=False
    )


SCORE = "$PY -m ragcore score run.trec --qrels qrels.txt -m RR"


@pytest.mark.parametrize("form", ["jsonl", "arrow"])
def test_pipes__that_close_early_end_quietly(form, folder):
    done = shell(f"{SCORE} -f {form} | head -c 1; echo ${{PIPESTATUS[0]}}", folder)
    assert done.stdout[1:] == "0\n"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("to", ["> /dev/full", ">&-"])
def test_stdout__that_cannot_be_written_is_an_error(to, folder):
    done = shell(f"{SCORE} {to}; echo $? >&2", folder)
    assert done.stderr.splitlines()[-1] == "2"
    assert "error: stdout cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_process_substitution__is_read_whole(folder):
    many = "".join(f"q1 Q0 d{i} 1 {9e5 - i} t\n" for i in range(5_000)) + "q1 Q0 b 1 -1 t\n"
    (folder / "long.trec").write_text(many)
    done = shell(
        "$PY -m ragcore score <(cat long.trec) --qrels <(cat qrels.txt) -m NumRet -f jsonl", folder
    )
    assert json.loads(done.stdout)["mean"] == 5_001.0


IMPORTS = """
import sys
from click.testing import CliRunner
from ragcore.cli import main
result = CliRunner().invoke(main, sys.argv[1:])
assert result.exit_code == 0, result.output
print(" ".join(m for m in ("numba", "polars", "tantivy", "pyarrow", "hnswlib") if m in sys.modules))
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["explain"], ["explain", "nDCG@10"], ["score", "-h"]]
)
def test_imports__of_help_and_explain_are_light(arguments, tmp_path):
    done = subprocess.run([sys.executable, "-c", IMPORTS, *arguments], env=environment(),
                          cwd=tmp_path, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "\n"


def test_imports__of_score_need_no_search_engine(folder):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, "score", "run.trec", "--qrels", "qrels.txt"],
        env=environment(), cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == {"numba", "pyarrow"}
