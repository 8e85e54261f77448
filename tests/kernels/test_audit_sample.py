"""The audit sampler: its hash against published numbers, its sizes against their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels import audit_sample as module
from ragcore_kernels.audit_sample import (
    HIGH_RISK,
    JUDGE_DISAGREEMENT,
    REST,
    SYSTEM_DISAGREEMENT,
    AuditPlan,
    audit_sample,
    sample_sizes,
    seeded_hash,
    stratum_of,
)

GOLDEN = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1
PINNED = [4597796892621956018, 747915184342789618, 15712046541780214473]
"""Never to change: samples of past releases rest on them."""

sizes = st.lists(st.integers(0, 400), min_size=4, max_size=4)


def listed(counts, prefix="case"):
    codes = [h for h, n in enumerate(counts) for _ in range(n)]
    return [f"{prefix}-{i}" for i in range(len(codes))], codes


# --- the hash


def test_mix__gives_the_published_stream():
    """First outputs of SplitMix64 from the seed 1234567."""
    wanted = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
        16408922859458223821,
    ]  # fmt: skip
    states = [(1234567 + (i + 1) * GOLDEN) & WORD for i in range(5)]
    assert [module._mix(state) for state in states] == wanted


def test_hash__is_pinned():
    assert seeded_hash("", 0) == module._mix(module._mix(GOLDEN))
    assert [seeded_hash("KA4-01", seed) for seed in (0, 1, WORD)] == PINNED
    start = module._mix((module._mix(GOLDEN) + 9 * GOLDEN) & WORD)
    first = module._mix(((start ^ 0x6867666564636261) + GOLDEN) & WORD)
    assert seeded_hash("abcdefghi", 0) == module._mix(((first ^ 0x69) + GOLDEN) & WORD)
    assert seeded_hash("问题-1", 0) != seeded_hash("问题-2", 0)
    assert seeded_hash("\ud800", 0) > 0  # half of a pair, as broken files have


def test_hash__tells_apart():
    names = ["", "\0", "\0\0", "a", "a\0", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaab", "baaaaaaa"]
    assert len({seeded_hash(name, 7) for name in names}) == len(names)
    assert len({seeded_hash("a", seed) for seed in range(1_000)}) == 1_000


def test_hash__is_even():
    draws = np.array([seeded_hash(f"case-{i}", 3) for i in range(4_000)], np.float64) / 2.0**64
    for share in (0.1, 0.5, 0.9):
        assert abs((draws < share).mean() - share) < 5 * math.sqrt(share * (1 - share) / 4_000)


# --- sizes


@pytest.mark.parametrize(
    ("available", "wanted"),
    [
        ((40, 60, 20, 500), (6, 9, 3, 32)),  # 15 % each; the rest up to 50
        ((40, 60, 20, 100), (6, 9, 3, 12)),  # enough for 30
        ((40, 60, 20, 150), (6, 9, 3, 15)),
        ((3, 1, 0, 200), (1, 1, 0, 28)),  # one case at least
        ((100, 100, 100, 50), (15, 15, 15, 5)),
        ((150, 100, 100, 50), (22, 14, 14, 0)),  # 15 % are too many, 10 % are not
        ((0, 0, 0, 12), (0, 0, 0, 12)),
        ((0, 0, 0, 0), (0, 0, 0, 0)),
    ],
)
def test_sizes__by_hand(available, wanted):
    assert tuple(sample_sizes(available, AuditPlan())[0]) == wanted


def test_sizes__that_cannot_be_kept_are_told():
    found, notes = sample_sizes((400, 300, 300, 0), AuditPlan())
    assert found == [20, 15, 15, 0]
    assert notes == ["10% of the 1000 flagged cases are 100; only 50 are audited"]
    found, notes = sample_sizes((40, 30, 10, 4), AuditPlan())
    assert found == [18, 6, 2, 4]
    assert notes == ["30 cases take more than 20% of a stratum"]
    found, notes = sample_sizes((2, 3, 4, 5), AuditPlan())
    assert found == [2, 3, 4, 5]
    assert notes == ["14 cases in all, fewer than the 30 to audit"]
    assert sample_sizes((40, 60, 20, 500), AuditPlan())[1] == []


@given(sizes)
def test_sizes__keep_their_bounds_or_say_so(available):
    found, notes = sample_sizes(available, AuditPlan())
    assert all(0 <= k <= n for k, n in zip(found, available, strict=True))
    assert min(30, sum(available)) <= sum(found) <= 50
    if not notes:
        for k, n in zip(found[:REST], available[:REST], strict=True):
            low = -(-n // 10)
            assert low <= k <= max(n // 5, low)
    if sum(available) >= 30 and available[REST] >= 30 and sum(available[:REST]) <= 450:
        assert not notes


@given(sizes, st.integers(0, 20), st.integers(0, 60))
def test_sizes__of_any_plan(available, least, more):
    plan = AuditPlan(0.3, 0.0, 0.5, least, least + more)
    found, _ = sample_sizes(available, plan)
    assert all(0 <= k <= n for k, n in zip(found, available, strict=True))
    assert min(least, sum(available)) <= sum(found) <= least + more


# --- the sample


def test_sample__takes_the_least_hashes_of_each_stratum():
    ids, codes = listed((40, 60, 20, 100))
    found = audit_sample(ids, codes, 11)
    assert found.chosen == (6, 9, 3, 12)
    assert found.available == (40, 60, 20, 100)
    assert (found.seed, found.notes) == (11, ())
    for h in range(4):
        group = [i for i, code in zip(ids, codes, strict=True) if code == h]
        group.sort(key=lambda i: seeded_hash(i, 11))
        taken = [i for i, code in zip(found.case_ids, found.strata, strict=True) if code == h]
        assert taken == group[: found.chosen[h]]


@given(st.lists(st.tuples(st.text(max_size=9), st.integers(0, 3)), unique_by=lambda r: r[0]),
       st.integers(0, WORD), st.randoms(use_true_random=False))  # fmt: skip
def test_sample__does_not_depend_on_the_order(rows, seed, random):
    found = audit_sample([i for i, _ in rows], [h for _, h in rows], seed)
    random.shuffle(rows)
    assert audit_sample([i for i, _ in rows], [h for _, h in rows], seed) == found
    assert set(found.case_ids) <= {i for i, _ in rows}
    assert len(set(found.case_ids)) == len(found.case_ids) == sum(found.chosen)


def test_sample__keeps_its_order_as_cases_are_added():
    ids, codes = listed((40, 40, 40, 300))
    small, large = audit_sample(ids[:200], codes[:200], 5), audit_sample(ids, codes, 5)
    assert large.case_ids[:18] == small.case_ids[:18]
    rest = [i for i in large.case_ids[18:] if i in ids[:200]]
    assert rest == list(small.case_ids[18:])[: len(rest)]


def test_sample__differs_by_seed():
    ids, codes = listed((0, 0, 0, 400))
    samples = [set(audit_sample(ids, codes, seed).case_ids) for seed in range(20)]
    assert len(set(map(frozenset, samples))) == 20
    assert 100 < len(set.union(*samples)) <= 400


def test_strata__of_what_is_known():
    assert stratum_of(True, True, True) == HIGH_RISK
    assert stratum_of(False, True, True) == SYSTEM_DISAGREEMENT
    assert stratum_of(False, False, True) == JUDGE_DISAGREEMENT
    assert stratum_of(False, False, False) == REST
    assert len(module.STRATA) == 4


def test_sample__takes_arrays():
    ids, codes = listed((4, 4, 4, 40))
    assert audit_sample(ids, np.array(codes, np.int8), np.int64(2)) == audit_sample(ids, codes, 2)


@pytest.mark.parametrize(
    ("ids", "codes", "seed", "text"),
    [
        (["a", "a"], [0, 3], 0, "case id 'a' stands twice"),
        (["a"], [0, 1], 0, "1 case ids and 2 strata"),
        (["a"], [4], 0, r"strata\[0\] is 4; expected a whole number from 0 to 3"),
        (["a"], [math.nan], 0, r"strata\[0\] is nan"),
        ([7], [0], 0, r"case_ids\[0\] is 7; expected text"),
        (["a"], [0], -1, "seed is -1"),
        (["a"], [0], 2**64, "seed is 18446744073709551616"),
        (["a"], [0], 0.5, "seed is 0.5"),
        (["a"], [0], math.inf, "seed is inf"),
    ],
)
def test_sample__rejects(ids, codes, seed, text):
    with pytest.raises(ValueError, match=text):
        audit_sample(ids, codes, seed)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"share": 0.3}, "shares are 0.1, 0.3, 0.2"), ({"least_share": math.nan}, "shares are"),
        ({"least": 60}, "least is 60, most 50"), ({"least": -1}, "least is -1"),
    ],
)  # fmt: skip
def test_plan__rejects(options, text):
    with pytest.raises(ValueError, match=text):
        AuditPlan(**options)
