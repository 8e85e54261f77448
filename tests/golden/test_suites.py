"""Every suite, run over its pinned data: golden values with a tolerance, and the page of suites."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from ragcore.catalogue.entries import entry

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = tomllib.loads((ROOT / "tests" / "golden" / "suites.toml").read_text("utf-8"))
TOLERANCE = GOLDEN.pop("tolerance")
PAGE = (ROOT / "docs" / "suites.md").read_text("utf-8")
AUTHORED = ("in_domain", "ka4", "mosaic")


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("bench.suites")


@pytest.fixture(scope="module")
def ran(bench, request, tmp_path_factory):
    """Each suite when it is first asked for."""
    made = {}

    def call(name):
        if name not in made:
            one = entry(str(ROOT / "data" / name))
            data = request.getfixturevalue("shared_data") if one.public else None
            made[name] = bench.run(one, data, tmp_path_factory.mktemp("suites"))
        return made[name]

    return call


def test_golden__has_every_suite_there_is():
    there = {toml.parent.name for toml in (ROOT / "data").glob("*/suite.toml")}
    assert set(GOLDEN) == there
    assert set(AUTHORED) < there


@pytest.mark.parametrize("name", GOLDEN)
def test_values__are_the_golden_ones(ran, name):
    found = ran(name)
    runs = {run.name: found.scores.means(run.name) for run in found.scores.runs}
    assert set(runs) == set(GOLDEN[name])
    for run, values in GOLDEN[name].items():
        known = {measure: value for measure, value in runs[run].items() if value == value}
        assert known == pytest.approx(values, abs=TOLERANCE), run


def rows_of(lines):
    """The first cell of every row of every table."""
    return [line.split(" | ")[0] for line in lines if line.startswith("| ")]


@pytest.mark.parametrize("name", GOLDEN)
def test_page__says_what_the_suite_says(bench, ran, name):
    """Words, counts and names; numbers are the golden values' business."""
    found = re.search(rf"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->", PAGE, re.DOTALL)
    assert found is not None
    own, page = bench.block(ran(name)), found[1].splitlines()
    assert [rows_of(lines) for lines in (own, page)] == [rows_of(own)] * 2
    assert page[0] == own[0]
    for limit in ran(name).entry.limits:
        assert f"- cannot show: {limit}" in page


@pytest.mark.parametrize("name", AUTHORED)
def test_page__of_an_authored_suite_is_up_to_date(bench, ran, name):
    (page,) = re.findall(rf"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->", PAGE, re.DOTALL)
    assert page.splitlines() == bench.block(ran(name)), "python -m bench.suites --update the page"


def test_public_suites__are_told_apart_from_ones_own(ran):
    for name in GOLDEN:
        one = entry(str(ROOT / "data" / name))
        assert one.public == one.kind.startswith("public (out of distribution)")
        assert one.limits, name
