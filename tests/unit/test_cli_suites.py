"""`ragcore suite` from the command line: what is printed where, and the exit status."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import collections_made as made
from conformance.shapes import cli


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a suite of one's own, and a cache."""
    return tmp_path_factory.mktemp("suites")


@pytest.fixture
def call(place, monkeypatch):
    monkeypatch.setenv("RAGCORE_CACHE", str(place / "cache"))
    monkeypatch.delenv("RAGCORE_DATA", raising=False)

    def run(*words, status=0):
        done = cli("suite", *words, cwd=place)
        assert done.returncode == status, done.stderr
        return done

    return run


def test_list__says_what_comes_along_and_what_is_missing(call):
    lines = call("list").stdout.splitlines()
    assert lines[0].split() == ["name", "kind", "version", "licence", "ladder", "data"]
    by_name = {line.split()[0]: line for line in lines[1:]}
    assert by_name["ka4"].endswith("comes along")
    assert by_name["qasper"].rstrip().endswith("files missing")
    assert "public (out of distribution)" in by_name["qasper"]


def test_show__counts_what_a_suite_holds(call):
    text = call("show", "in_domain").stdout
    assert "cannot show: how real users ask" in text
    assert "reviewed by a person" in text
    assert "paraphrase" in text
    assert "words shared with evidence" in text


def test_show__of_a_suite_without_its_data_still_says_what_it_is(call):
    done = call("show", "qasper")
    assert "licence CC BY 4.0" in done.stdout
    assert "qasper/corpus.parquet" in done.stdout
    assert "62f5fe178480af68fdd66ce7ba0aa1c08c48d7cc5e28f22258133be5b8d705e8" in done.stdout
    assert "Official distribution" in done.stdout
    assert "RAGCORE_DATA" in done.stderr


def test_check__passes_and_fails_by_exit_status(call, place):
    assert "WRONG" not in call("check", "ka4", "mosaic").stdout
    done = call("check", "qasper", status=2)
    assert "WRONG  readable" in done.stdout
    assert done.stderr.strip() == "error: 1 finding"


def test_run__prints_a_report_and_leaves_a_suite_folder(call, place):
    done = call("run", "ka4", "--work", str(place / "ka4"))
    assert "  ka4 ka4.1: development (authored, not a sample)" in done.stdout
    assert "  cannot show: what users ask" in done.stdout
    assert "baseline  end_to_end          0.5833  7/12" in done.stdout
    assert "What each run leaves open" in done.stdout
    assert (place / "ka4" / "runs" / "baseline.arrow").is_file()
    again = cli("score", "ka4/runs/baseline.arrow", "-m", "end_to_end", "-f", "jsonl", cwd=place)
    assert json.loads(again.stdout)["mean"] == 7 / 12


def test_run__of_two_suites_never_mixes_them(call):
    rows = [json.loads(line) for line in call("run", "ka4", "mosaic", "-f", "jsonl",
                                              "-m", "end_to_end").stdout.splitlines()]  # fmt: skip
    assert {row["run"].split("/")[0] for row in rows} == {"ka4", "mosaic"}
    assert all(row["run"].count("/") == 1 for row in rows)
    pages = call("run", "ka4", "mosaic", "-m", "end_to_end").stdout
    assert pages.count("\nScores\n") == 2


def test_run__writes_arrow_with_the_columns_of_a_summary(call, place):
    call("run", "ka4", "-f", "arrow", "-o", str(place / "out.arrow"))
    table = pa.ipc.open_file(str(place / "out.arrow")).read_all()
    assert table["run"].unique().to_pylist() == ["ka4/baseline", "ka4/filtered"]
    assert {"numerator", "denominator", "ci_low", "n_na"} <= set(table.column_names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "nothing"), "no suite 'nothing'"),
        (("run", "in_domain", "--strategy", "magic"), "unknown strategy 'magic'"),
        (("run", "in_domain", "--scope", "moon"), "unknown scope 'moon'"),
        (("run", "ka4", "--strategy", "bm25"), "recorded runs and no strategies"),
        (("run", "ka4", "mosaic", "--work", "x"), "--work is for one suite"),
        (("run", "qasper"), "the data of qasper is not in"),
        (("run", "in_domain", "--split", "train"), "splits test, validation"),
    ],
)
def test_bad_input__exits_2_and_prints_nothing(call, words, said):
    done = call(*words, status=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_run__of_a_folder_with_a_changed_file_is_refused(call, place, monkeypatch):
    source = made.write(place / "own", place / "data")
    toml = source / "suite.toml"
    text = toml.read_text().replace('importer = "made_shore"\n', "").replace(
        "public (out of distribution)", "development"
    )  # fmt: skip
    toml.write_text(text.replace('"shore/corpus.parquet"', '"cases.arrow"'))
    (source / "cases.arrow").write_bytes(b"other")
    done = call("run", str(source), status=2)
    assert "cases.arrow: sha256" in done.stderr
    assert "figures would not compare" in done.stderr
