"""Every resampled mean of a small sample, with the exact probability of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from ragcore_kernels.histogram import Sample, sample_of
from ragcore_kernels.integers import listed, packed_bits, ways
from ragcore_kernels.lattice import Lattice, prepare

MAX_ATOMS = 20_000
"""Most means that are listed."""

_MAX_BITS, _MAX_STEPS = 1 << 22, 1_000_000


@dataclass(frozen=True)
class Distribution:
    """Every resampled mean, ascending, and how many of the n**n ordered resamples have it."""

    means: tuple[Fraction, ...]
    ways: tuple[int, ...]
    n: int

    @property
    def resamples(self) -> int:
        """Ordered resamples, n**n: the sum of `ways`."""
        return self.n**self.n

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """Share of each mean."""
        return tuple(Fraction(count, self.resamples) for count in self.ways)


def mean_distribution(values: ArrayLike | Sample) -> Distribution:
    """Every resampled mean of a small sample, with exact probabilities.

    Parameters
    ----------
    values : (n,), finite numbers, n >= 1; or their `histogram`. On a lattice they stand for the
        rationals meant, 0.1 for a tenth; off a lattice for themselves.

    Raises
    ------
    ValueError
        If there are no values, or too many resamples to list: more than `MAX_ATOMS` means, or
        counts too long to compute. Also if a value is not finite or the shape is wrong.
    """
    sample = sample_of(values)
    n, kinds = sample.size, sample.values.size
    if n == 0:
        raise ValueError("there are no values; expected at least one")
    if n >= MAX_ATOMS:
        raise ValueError(f"there are {n} values; expected fewer than {MAX_ATOMS}")
    if kinds == 1:
        return Distribution((Fraction(float(sample.values[0])),), (n**n,), n)
    lattice = prepare(sample).lattice
    if lattice and n * int(lattice.points[-1]) < MAX_ATOMS:
        bits = packed_bits(int(lattice.points[-1]), n)
        if bits > _MAX_BITS:
            raise ValueError(f"counts of all means take {bits} bits; expected {_MAX_BITS} at most")
        found = [(s, w) for s, w in enumerate(ways(lattice.points, lattice.counts)) if w]
        means = tuple(lattice.origin + lattice.step * Fraction(s, n) for s, _ in found)
        return Distribution(means, tuple(w for _, w in found), n)
    few = min(n, kinds - 1) < MAX_ATOMS.bit_length()  # else there are 2**min means or more
    if (
        not few
        or math.comb(n + kinds - 1, n) > MAX_ATOMS
        or math.comb(n + kinds - 1, kinds) * kinds > _MAX_STEPS
    ):
        raise ValueError(
            f"{n} cases with {kinds} distinct values have too many means; "
            f"expected {MAX_ATOMS} at most, or fewer cases"
        )
    return _listed(sample, lattice, n)


def _listed(sample: Sample, lattice: Lattice | None, n: int) -> Distribution:
    """The distribution of values that are far apart on their lattice, or on none."""
    if lattice:
        exact = [lattice.origin + lattice.step * point for point in lattice.points.tolist()]
        counts = lattice.counts.tolist()
    else:
        exact = [Fraction(value) for value in sample.values.tolist()]
        counts = sample.counts.tolist()
    over = math.lcm(*(value.denominator for value in exact))
    found = sorted(listed([int(value * over) for value in exact], counts, n).items())
    means = tuple(Fraction(total, over * n) for total, _ in found)
    return Distribution(means, tuple(count for _, count in found), n)
