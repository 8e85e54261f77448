"""How often the intervals of a mean paired difference hold the true one: the tables of a page.

python -m bench.calibration --quick
python -m bench.calibration --update docs/calibration.md

`coverage.py` does the sums and the drawing. Each row that is drawn has a generator of its own, so
that it depends on the seed alone.
"""

from __future__ import annotations

import argparse
import math
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from .coverage import (
    BCA,
    F64,
    FORMS,
    MEASURES,
    P90,
    P95,
    P99,
    Coverage,
    Drawn,
    differing_cases,
    drawn,
    exact,
    mix_of,
)
from .peers.report import publish, table, tell

SIZES = (12, 30, 100, 1_000)
DISCORDANCES = tuple(map(Fraction, ("0.02", "0.1", "0.2", "0.4")))
SHARES = (Fraction(0), Fraction(1, 4), Fraction(1, 2))  # of the discordance: the difference

BANDS = (
    *(range(1, 3), range(3, 5), range(5, 10), range(10, 15), range(15, 20), range(20, 30)),
    *(range(30, 51, 2), range(50, 101, 5), range(100, 201, 10), range(200, 401, 20)),
)
"""Discordant cases expected; coverage is not monotone, so that one number would not do."""

TWENTIETHS = tuple(Fraction(i, 20) for i in range(20))

DIFFERING = (0.1, 0.3, 0.7)
LIST = 20_000  # differing cases of a measure

BLOCKS = ("binary", "levels", "size", "enough", *MEASURES, "ranges")
"""Names of the tables, as in the markers of the page."""


# --- tables


def share_text(share: float, places: int = 1) -> str:
    """In per cent."""
    return f"{100 * share:.{places}f}"


def coverage_texts(found: Coverage) -> list[str]:
    """Coverage, misses on either side, width."""
    shares = (found.covered, found.above, found.below)
    return [*map(share_text, shares), f"{found.width:.3f}"]


def tally(counts: list[int], each: int) -> str:
    """How many in all rows, and in the worst."""
    return f"{sum(counts):,} of {each * len(counts):,}, at most {max(counts):,} in a row"


COVERAGE_HEAD = ["percentile", "d < low", "d > high", "width"]
COVERAGE_HEAD += ["BCa", *COVERAGE_HEAD[1:], "[0, 0]"]


def binary_tables(sizes: tuple[int, ...]) -> dict[str, list[str]]:
    """The tables of fixed designs: coverage, other levels, size of the tests."""
    coverage, levels, size = [], [], []
    for n in sizes:
        for discordance in DISCORDANCES:
            for share in SHARES:
                difference = discordance * share
                found = exact(n, discordance, difference)
                kinds = found.kinds
                tell(f"n = {n}, discordance {float(discordance)}: {kinds[P95].covered:.4f}")
                design = [f"{n:,}", f"{float(discordance):g}", f"{float(difference):g}"]
                texts = coverage_texts(kinds[P95]) + coverage_texts(kinds[BCA])
                coverage.append([*design, *texts, share_text(found.flat)])
                each = [kinds[kind].covered for kind in (P90, P95, P99)]
                levels.append([*design, *map(share_text, [*each, found.patched])])
                if difference == 0:
                    if found.rejected > 0.05:
                        raise SystemExit(f"{design}: the sign-flip test rejects {found.rejected}")
                    missed = [kinds[kind].above + kinds[kind].below for kind in (P95, BCA)]
                    errors = [found.rejected, *missed]
                    size.append([*design[:2], *(share_text(x, 2) for x in errors)])
    head = ["n", "discordance", "d"]
    return {
        "binary": table([*head, *COVERAGE_HEAD], coverage, True),
        "levels": table([*head, "90 %", "95 %", "99 %", "95 %, patched"], levels, True),
        "size": table([*head[:2], "sign-flip", "percentile", "BCa"], size, True),
    }


def least(n: int, expected: int) -> tuple[float, float]:
    """Least coverage at 95 %, percentile and BCa, over differences up to the discordance."""
    rate = Fraction(expected, n)
    found = [exact(n, rate, rate * share).kinds for share in TWENTIETHS]
    return min(kinds[P95].covered for kinds in found), min(kinds[BCA].covered for kinds in found)


def enough_table(sizes: tuple[int, ...]) -> list[str]:
    """The least coverage by how many discordant cases are expected, up to half of all."""
    rows = []
    for band in BANDS:
        row = [f"{band[0]}-{band[-1]}"]
        for n in sizes:
            found = [least(n, expected) for expected in band if 2 * expected <= n]
            parts = [min(part) for part in zip(*found, strict=True)] or [None, None]
            row += ["" if part is None else share_text(part) for part in parts]
            tell(f"n = {n}, {row[0]} discordant cases expected: {' '.join(row[-2:])}")
        if any(row[1:]):
            rows.append(row)
    names = [f"{kind}, {n:,}" for n in sizes for kind in ("percentile", "BCa")]
    return table(["expected", *names], rows, True)


Options = argparse.Namespace
Rows = dict[tuple[float, str, int], Drawn]


def graded(measure: str, magnitudes: F64, options: Options) -> Rows:
    """Coverage of one measure, drawn, by share of differing cases, form and n."""
    rows = {}
    for differing in DIFFERING:
        for form in FORMS:
            mix = mix_of(magnitudes, form)
            for n in options.sizes:
                key = [MEASURES.index(measure), round(100 * differing), FORMS.index(form), n]
                rng = np.random.default_rng([options.seed, *key])
                found = drawn(rng, mix, differing, n, options.samples)
                tell(f"{measure} {differing} {form}, n = {n}: {found.kinds[0].covered:.3f}")
                rows[differing, form, n] = found
    return rows


def graded_table(rows: Rows, options: Options) -> list[str]:
    """All that was found of one measure."""
    texts = []
    for (differing, form, n), found in rows.items():
        design = [f"{differing:g}", form, f"{found.mean:.3f}" if found.mean else "0", f"{n:,}"]
        coverage = coverage_texts(found.kinds[0]) + coverage_texts(found.kinds[1])
        rejected = "" if found.mean else share_text(found.rejected)
        texts.append([*design, *coverage, share_text(found.flat), rejected])
    samples, error = options.samples, 100 * math.sqrt(0.95 * 0.05 / options.samples)
    near, random = ([getattr(r, part) for r in rows.values()] for part in ("doubtful", "random"))
    return [
        f"{samples:,} samples a row, seed {options.seed}: a coverage near 95 has a standard error "
        f"of {error:.1f}.",
        f"Ends within their own bound of d: {tally(near, 4 * samples)}.",
        f"Intervals that random numbers gave: {tally(random, 2 * samples)}.",
        "",
        *table(["differ", "form", "d", "n", *COVERAGE_HEAD, "sign-flip"], texts, True),
    ]


def ranges_table(measured: dict[str, Rows], options: Options) -> list[str]:
    """Least and greatest coverage of the forms, by how many differing cases are expected."""
    texts = []
    for expected, differing, n in sorted((d * n, d, n) for d in DIFFERING for n in options.sizes):
        row = [f"{expected:.3g}", f"{differing:g}", f"{n:,}"]
        for kind in range(2):
            for rows in measured.values():
                found = [100 * rows[differing, form, n].kinds[kind].covered for form in FORMS]
                row.append(f"{min(found):.1f}-{max(found):.1f}")
        texts.append(row)
    names = [f"{kind}, {measure}" for kind in ("percentile", "BCa") for measure in measured]
    return table(["expected", "differ", "n", *names], texts, True)


def main(arguments: list[str] | None = None) -> None:
    """Print every table, and put it into the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2_000, help="samples a row, where drawn")
    parser.add_argument("--seed", type=int, default=1, help="of the lists and samples")
    parser.add_argument("--quick", action="store_true", help="12 and 30 cases, 10 samples a row")
    parser.add_argument("--update", type=Path, help="page whose tables are replaced")
    options = parser.parse_args(arguments)
    page = options.update.read_text() if options.update else ""
    missing = [name for name in BLOCKS if page and f"<!-- begin {name} -->" not in page]
    if missing:  # said at once, not after minutes
        raise SystemExit(f"{options.update} has no block {', '.join(missing)}")
    options.sizes = SIZES[:2] if options.quick else SIZES
    options.samples = 10 if options.quick else options.samples
    start = time.process_time()
    for name, lines in binary_tables(options.sizes).items():
        publish(name, lines, options.update)
    publish("enough", enough_table(options.sizes), options.update)
    tell(f"{time.process_time() - start:.0f} s of processor time so far")
    magnitudes = differing_cases(np.random.default_rng(options.seed), LIST)
    measured = {}
    for measure in MEASURES:
        measured[measure] = graded(measure, magnitudes[measure], options)
        publish(measure, graded_table(measured[measure], options), options.update)
    publish("ranges", ranges_table(measured, options), options.update)
    tell(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
