"""Coverage of the intervals: sums over outcomes against enumeration; the page of its tables."""

from __future__ import annotations

import importlib
import math
import re
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from reference_resample import gathered
from reference_tails import bca_of, enumerated_pmf

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "calibration.md"
LEVELS = ("0.9", "0.95", "0.99")


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("bench.calibration")


@pytest.fixture(scope="module")
def coverage(bench):
    return importlib.import_module("bench.coverage")


# --- outcomes of 0 or 1, by listing every sample


@cache
def reference_ends(outcome):
    """Low and high of the percentile intervals, then of BCa, of a sorted sample."""
    values = [Fraction(v) for v in outcome]
    found = [gathered(values, level) for level in LEVELS]
    if len(set(values)) == 1:
        return [*found, (values[0], values[0])]
    n = len(values)
    low, high = bca_of(values, enumerated_pmf(values), 0.95)[:2]
    return [*found, (Fraction(round(low * n), n), Fraction(round(high * n), n))]


@cache
def reference_p(outcome):
    """Share of the assignments of signs that are at least as far from 0."""
    sizes = [abs(v) for v in outcome if v]
    sums = [
        sum(map(math.prod, zip(sizes, e, strict=True))) for e in product((-1, 1), repeat=len(sizes))
    ]
    return Fraction(sum(abs(s) >= abs(sum(outcome)) for s in sums), len(sums))


def listed(n, discordance, difference):
    """As `exact`: every one of 3**n samples, in fractions."""
    chance = {1: (discordance + difference) / 2, -1: (discordance - difference) / 2}
    chance[0] = 1 - discordance
    kinds = [Counter() for _ in range(4)]
    rejected = flat = Fraction(0)
    for sample in product((-1, 0, 1), repeat=n):
        p = math.prod(chance[v] for v in sample)
        outcome = tuple(sorted(sample))
        for tally, (low, high) in zip(kinds, reference_ends(outcome), strict=True):
            tally["covered"] += p * (low <= difference <= high)
            tally["above"] += p * (low > difference)
            tally["below"] += p * (high < difference)
            tally["width"] += p * (high - low)
        rejected += p * (reference_p(outcome) <= Fraction(1, 20))
        flat += p * (not any(sample))
    return kinds, rejected, flat


DESIGNS = [("1/2", "0"), ("1/2", "1/3"), ("2/5", "1/5"), ("1/10", "-1/40"), ("9/10", "1/2")]


@pytest.mark.parametrize(("discordance", "difference"), DESIGNS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_exact__equals_the_list_of_all_samples(coverage, n, discordance, difference):
    design = n, Fraction(discordance), Fraction(difference)
    got, (kinds, rejected, flat) = coverage.exact(*design), listed(*design)
    for found, wanted in zip(got.kinds, kinds, strict=True):
        for part in ("covered", "above", "below", "width"):
            assert getattr(found, part) == pytest.approx(float(wanted[part]), abs=1e-12), part
    assert got.rejected == pytest.approx(float(rejected), abs=1e-12)
    assert got.flat == pytest.approx(float(flat), abs=1e-12)


def test_exact__counts_an_end_at_the_true_mean_as_covering(coverage):
    # One win and one tie give [0, 1], and 0 is that end.
    got = coverage.exact(2, Fraction(1, 2), Fraction(0)).kinds[coverage.P95]
    assert got.covered == pytest.approx(1 - 2 / 16)  # all but two wins or two losses
    assert got.above == got.below == pytest.approx(1 / 16)


def test_exact__of_a_negative_difference_is_the_mirror_image(coverage):
    plus, minus = (coverage.exact(20, Fraction(3, 10), Fraction(d, 10)) for d in (1, -1))
    for here, there in zip(plus.kinds, minus.kinds, strict=True):
        assert here.above == pytest.approx(there.below, abs=1e-14)
        assert here.below == pytest.approx(there.above, abs=1e-14)
        assert here.width == pytest.approx(there.width, abs=1e-14)


def test_exact__patches_the_samples_without_a_difference_alone(coverage):
    got = coverage.exact(12, Fraction(1, 10), Fraction(1, 40))
    assert got.flat == pytest.approx(0.9**12)
    assert got.patched == pytest.approx(got.kinds[coverage.P95].covered + got.flat)
    none = coverage.exact(12, Fraction(1, 10), Fraction(0))
    assert none.patched == none.kinds[coverage.P95].covered
    far = coverage.exact(12, Fraction(1, 2), Fraction(3, 10))  # beyond 0.265, the bound
    assert far.patched == far.kinds[coverage.P95].covered


@pytest.mark.parametrize(("n", "up", "down"), [(1_000, "0.3", "0.1"), (1_000, "0.0125", "0.0075")])
def test_outcomes__hold_all_but_what_may_be_left_out(coverage, n, up, down):
    up, down = Fraction(up), Fraction(down)
    wins, losses, p = coverage.outcomes(n, up, down)
    assert 0 < 1 - math.fsum(p) < coverage.LEFT_OUT
    assert len({*zip(wins.tolist(), losses.tolist(), strict=True)}) == wins.size < 30_000
    for at in (0, wins.size // 2, int(p.argmax())):
        i, j = int(wins[at]), int(losses[at])
        plain = (
            math.comb(n, i) * math.comb(n - i, j) * up**i * down**j * (1 - up - down) ** (n - i - j)
        )
        assert p[at] == pytest.approx(float(plain), rel=1e-11)


def test_sign_flip__keeps_its_size(coverage):
    for n in (12, 30, 100):
        for rate in (Fraction(1, 50), Fraction(3, 10), Fraction(9, 10)):
            assert coverage.exact(n, rate, Fraction(0)).rejected <= 0.05


# --- graded measures


def test_mixes__have_the_means_they_are_meant_to_have(coverage):
    for name, sizes in coverage.differing_cases(np.random.default_rng(1), 500).items():
        assert sizes.size == 500, name
        assert 0 < sizes.min() <= sizes.max() <= 1
        for form in coverage.FORMS:
            mix = coverage.mix_of(sizes, form)
            mean = mix.won * mix.wins.mean() - (1 - mix.won) * mix.losses.mean()
            assert mix.mean == pytest.approx(mean, abs=1e-12), form
            assert (mix.mean == 0) == (form != "better")
            assert set(mix.wins) | set(mix.losses) == set(sizes)
        lopsided = coverage.mix_of(sizes, "lopsided")
        assert lopsided.wins.min() >= lopsided.losses.max()
        assert lopsided.won < 0.3


def test_drawn__agrees_with_the_sums_over_outcomes(coverage):
    one = np.ones(1)
    mix = coverage.Mix(one, one, 0.75, 0.5)  # discordance 0.3, difference 0.15
    got = coverage.drawn(np.random.default_rng(8), mix, 0.3, 12, 1_000)
    wanted = coverage.exact(12, Fraction(3, 10), Fraction(3, 20))
    pairs = [(got.rejected, wanted.rejected), (got.flat, wanted.flat)]
    for found, kind in zip(got.kinds, (coverage.P95, coverage.BCA), strict=True):
        assert found.width == pytest.approx(wanted.kinds[kind].width, abs=0.02)
        for part in ("covered", "above", "below"):
            pairs.append((getattr(found, part), getattr(wanted.kinds[kind], part)))
    for share, true in pairs:
        assert abs(share - true) <= 4 * math.sqrt(true * (1 - true) / 1_000)


def test_drawn__is_fixed_by_its_seed_and_adds_up(coverage):
    sizes = np.array([0.5, 0.25])
    mix = coverage.Mix(sizes, sizes, 0.5, 0.0)
    runs = [coverage.drawn(np.random.default_rng(s), mix, 0.3, 12, 40) for s in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]
    for found in runs[0].kinds:
        assert found.covered + found.above + found.below == pytest.approx(1)
    assert runs[0].mean == 0.0
    assert runs[0].random == 0
    none = coverage.drawn(np.random.default_rng(0), mix, 0.0, 12, 3)
    assert none.flat == none.kinds[0].covered == 1.0


# --- the page


def parts(text):
    """Names of the blocks in order, their contents, and the text outside them."""
    found = re.findall(r"<!-- begin (.+?) -->\n(.*?)\n<!-- end \1 -->", text, re.DOTALL)
    outside = re.sub(r"(<!-- begin (.+?) -->).*?(<!-- end \2 -->)", r"\1\3", text, flags=re.DOTALL)
    return [name for name, _ in found], [body for _, body in found], outside


def test_page__has_the_blocks_that_the_script_writes(bench):
    text = PAGE.read_text()
    names, bodies, _ = parts(text)
    assert sorted(names) == sorted(bench.BLOCKS)
    assert text.count("<!-- begin ") == text.count("<!-- end ") == len(names)
    assert all("| --- |" in body for body in bodies)
    assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith("|"))


def test_page__has_the_rows_of_today_and_of_a_full_run(bench):
    lines = PAGE.read_text().splitlines()
    for name, rows in bench.binary_tables(bench.SIZES[:2]).items():
        assert set(rows) <= set(lines), name
    assert sum(line.startswith("2,000 samples a row, seed 1:") for line in lines) == 2


def test_quick__fills_every_block_and_nothing_else(bench, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    bench.main(["--quick", "--update", str(page)])
    before, after = parts(PAGE.read_text()), parts(page.read_text())
    assert before[0] == after[0]
    assert before[2] == after[2]
    assert all(old != new for old, new in zip(before[1], after[1], strict=True))
    out, err = capsys.readouterr()
    assert all(body in out for body in after[1])
    assert "s of processor time" in err


def test_update__wants_a_page_with_all_blocks(bench, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text().replace("<!-- begin size -->", ""))
    with pytest.raises(SystemExit, match="no block size"):
        bench.main(["--quick", "--update", str(page)])
