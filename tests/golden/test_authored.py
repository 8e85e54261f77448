"""What every authored suite keeps: its program writes the same files, and `suite.toml` is right."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import tables
from ragcore import packed, schema
from ragcore.suite_files import CHINESE
from ragcore.suites import open_suite

ROOT = Path(__file__).resolve().parents[2]
SUITES = {path.parent.name: path.parent for path in sorted((ROOT / "data").glob("*/generate.py"))}
DECLARED = {
    name: tomllib.loads((path / "suite.toml").read_text("utf-8")) for name, path in SUITES.items()
}
VECTOR = pa.field("vector", pa.list_(pa.float16(), 384))
OWN = {
    ("in_domain", "cases.arrow"): [pa.field("reviewed", pa.bool_()), VECTOR],
    ("in_domain", "chunks.arrow"): [VECTOR],
    ("ka4", "chunks.arrow"): CHINESE,
    ("mosaic", "chunks.arrow"): CHINESE,
}
"""Columns that a suite keeps besides those of the schema."""
each_suite = pytest.mark.parametrize("name", SUITES)
each_file = pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, one in DECLARED.items() for file in one["files"]]
)


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory):
    """The suites, written anew; each when it is first asked for."""
    made = {}

    def folder(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            command = [sys.executable, str(SUITES[name] / "generate.py"), "--out", str(made[name])]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        return made[name]

    return folder


def test_suites__are_found():
    assert {"in_domain", "ka4", "mosaic"} <= set(SUITES)


@each_file
def test_generator__writes_the_same_tables(rewritten, name, file):
    again = tables.read_ipc(rewritten(name) / file)
    assert again.equals(tables.read_ipc(SUITES[name] / file), check_metadata=True)


@each_file
def test_generator__writes_the_same_bytes(rewritten, name, file):
    written = DECLARED[name]["pyarrow"]
    if pa.__version__ != written:
        pytest.skip(f"written by pyarrow {written}, this is {pa.__version__}")
    assert (rewritten(name) / file).read_bytes() == (SUITES[name] / file).read_bytes()


@each_suite
def test_generator__writes_the_same_description(rewritten, name):
    again = tomllib.loads((rewritten(name) / "suite.toml").read_text("utf-8"))
    assert {**again, "pyarrow": "", "files": {}} == {**DECLARED[name], "pyarrow": "", "files": {}}
    assert list(again["files"]) == list(DECLARED[name]["files"])


@each_suite
def test_description__names_every_file_with_its_checksum_and_rows(name):
    folder, files = SUITES[name], DECLARED[name]["files"]
    there = {p.relative_to(folder) for p in folder.rglob("*.arrow")}
    kept = {p for p in there if not p.parts[0].endswith(".sweep")}  # of somebody's own sweep
    assert set(files) == {p.as_posix() for p in kept}
    for file, entry in files.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == entry["sha256"], file
        assert tables.read_ipc(folder / file).num_rows == entry["rows"], file
    opened = open_suite(folder)
    assert (opened.name, opened.cases.num_rows) == (name, files["cases.arrow"]["rows"])


@each_file
def test_schemas__are_those_of_ragcore(name, file):
    found = tables.read_ipc(SUITES[name] / file).schema
    base = {"cases.arrow": schema.CASES, "chunks.arrow": schema.CHUNKS}.get(file)
    if base is not None:
        assert found.equals(pa.schema([*base, *OWN.get((name, file), ())]))
    elif file.startswith("judgments/"):
        said = [field for field in found if field.name != packed.COLUMN]
        assert all(field == schema.JUDGMENTS.field(field.name) for field in said)
        assert len(said) < len(found) or found.equals(schema.JUDGMENTS)
    else:
        assert found.equals(schema.RUNS)
