"""Exact power, against plain sums over every outcome."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from click.testing import CliRunner

from conformance.shapes import json_lines
from ragcore import schema
from ragcore.cli import main
from ragcore.errors import UsageError
from ragcore.power import cases_needed, detectable, power_of
from ragcore_kernels.resample import mean_interval


def found(wins, losses, n, test):
    """Whether the outcome is taken for a gain, by interval or by p-value."""
    if test == "interval":
        low = mean_interval([1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses)).low
        return low > 0
    m = wins + losses
    p = min(
        Fraction(1), 2 * Fraction(sum(comb(m, k) for k in range(max(wins, losses), m + 1)), 2**m)
    )
    return wins > losses and p <= Fraction(1, 20)


def plainly(n, discordance, difference, test):
    """The power, summed over all wins and losses."""
    up, down = (discordance + difference) / 2, (discordance - difference) / 2
    total = 0.0
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            ties = n - wins - losses
            ways = comb(n, wins) * comb(n - wins, losses)
            chance = ways * up**wins * down**losses * (1 - discordance) ** ties
            if chance and found(wins, losses, n, test):
                total += chance
    return total


@pytest.mark.parametrize("test", ["interval", "sign-flip"])
@pytest.mark.parametrize(
    ("n", "discordance", "difference"),
    [(2, 0.5, 0.2), (8, 0.5, 0.3), (12, 0.3, 0.3), (12, 1.0, 0.5), (30, 0.3, 0.2), (45, 0.15, 0.0)],
)
def test_power__equals_a_plain_sum(n, discordance, difference, test):
    assert power_of(n, discordance, difference, test=test) == pytest.approx(
        plainly(n, discordance, difference, test), abs=1e-11
    )


@pytest.mark.parametrize("test", ["interval", "sign-flip"])
def test_detectable__is_the_least_difference(test):
    got = detectable(200, 0.2, test=test)
    assert got.power == pytest.approx(0.8, abs=1e-5)
    assert power_of(200, 0.2, got.difference - 1e-4, test=test) < 0.8
    assert power_of(200, 0.2, got.difference, test=test) >= 0.8


@pytest.mark.parametrize("test", ["interval", "sign-flip"])
def test_cases__reach_the_target_and_keep_it(test):
    got = cases_needed(0.1, 0.2, test=test)
    n = got.n
    assert power_of(n - 1, 0.2, 0.1, test=test) < 0.8
    assert all(power_of(m, 0.2, 0.1, test=test) >= 0.8 for m in range(n, n + n // 10))


def test_detectable__nothing_says_why():
    got = detectable(6, 0.1)
    assert got.difference is None
    assert got.reason.startswith("even if every discordant case is won, the power is 0.")
    assert got.power == power_of(6, 0.1, 0.1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: power_of(0, 0.1, 0.1), "0 cases"),
        (lambda: power_of(10, 0.0, 0.0), "discordance 0"),
        (lambda: power_of(10, 0.1, 0.2), "difference 0.2"),
        (lambda: power_of(10, 0.1, 0.1, level=1.0), "level 1"),
        (lambda: power_of(10, 0.1, 0.1, test="t"), "test='t'"),
        (lambda: detectable(10, 0.1, target=1.0), "power 1"),
        (lambda: cases_needed(0.0, 0.1), "difference 0"),
    ],
)
def test_arguments__are_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()


def test_command(tmp_path):
    def run(*arguments, status=0):
        done = CliRunner().invoke(main, ["power", *arguments])
        assert done.exit_code == status, done.output
        return done

    text = run("--cases", "100", "--discordance", "0.2").stdout.splitlines()
    assert text[0].split() == ["test", "cases", "discordance", "difference", "power"]
    assert [line.split()[0] for line in text[1:]] == ["interval", "sign-flip"]
    (row,) = json_lines(
        run(
            "--difference", "0.1", "--discordance", "0.2", "--test", "interval", "-f", "jsonl"
        ).stdout
    )
    assert list(row) == schema.POWER.names
    assert row["n"] == cases_needed(0.1, 0.2).n
    (both,) = json_lines(
        run("-n", "50", "--difference", "0.1", "--discordance", "0.2", "--test", "sign-flip", "-f",
            "jsonl").stdout
    )  # fmt: skip
    assert both["power"] == power_of(50, 0.2, 0.1, test="sign-flip")
    run("--discordance", "0.2", status=2)
