"""Ids where they lie: equality, order, hashes, segments, codes and groups, against Python."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
from ragcore_kernels import ids
from ragcore_kernels._jit import JIT

quiet = settings(derandomize=True, deadline=None, max_examples=150 if JIT else 20)
short = st.binary(max_size=6)
alike = st.builds(
    lambda a, b, c: a + b + c, st.sampled_from([b"", b"doc-", b"document-0000"]), short,
    st.sampled_from([b"", b"-en", b"-chunk-0000000001"]),
)  # fmt: skip


def at(column, piece, row):
    address, size = ids.locate(column.table, piece, row)
    return int(address), int(size)


def pairs_of(values):
    column = tables.Pieces([values])
    return [at(column, 0, i) for i in range(len(values))], column


# --- equality, order, hash


@pytest.mark.parametrize("kind", tables.KINDS)
def test_locate__finds_every_id_of_every_layout(kind):
    chunks = [tables.hostile_ids(), [], [b"", b"x" * 12, b"x" * 13, b""]]
    column = tables.Pieces(chunks, kind)
    import ctypes

    found = [
        [ctypes.string_at(*at(column, piece, row)) for row in range(len(chunk))]
        for piece, chunk in enumerate(chunks)
    ]
    assert found == chunks


def test_same_id__is_equality_of_bytes():
    values = tables.hostile_ids()
    places, a = pairs_of(values)
    again, b = pairs_of([b"?", *values])
    assert a.table[0, 3] != b.table[0, 3]
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            assert bool(ids.same_id(*places[i], *again[j + 1])) == (x == y), (x, y)


def test_greater_id__is_the_order_of_bytes():
    values = tables.hostile_ids()
    places, column = pairs_of(values)
    assert len(column.keep) == 2
    for (i, x), (j, y) in itertools.product(enumerate(values), repeat=2):
        assert bool(ids.greater_id(*places[i], *places[j])) == (x > y), (x, y)


@given(st.lists(alike, min_size=2, max_size=8))
@quiet
def test_same_and_greater__on_ids_with_shared_ends(values):
    places, column = pairs_of(values)
    assert column.chunks == [values]
    for (i, x), (j, y) in itertools.product(enumerate(values), repeat=2):
        assert bool(ids.same_id(*places[i], *places[j])) == (x == y)
        assert bool(ids.greater_id(*places[i], *places[j])) == (x > y)


def test_hash_id__depends_on_the_bytes_alone():
    values = tables.hostile_ids()
    places, a = pairs_of(values)
    shifted, b = pairs_of([b"odd", *values])
    assert a.keep
    assert b.keep
    for one, other in zip(places, shifted[1:], strict=True):
        assert ids.hash_id(*one) == ids.hash_id(*other)


def test_hash_id__spreads_counted_ids():
    names = [f"{kind}{i:0{width}}".encode() for kind in ("d", "MARCO_", "clueweb12-0000tw-")
             for width in (0, 8) for i in range(2_000 if JIT else 100)]  # fmt: skip
    names = list(dict.fromkeys(names))
    places, column = pairs_of(names)
    hashes = np.array([ids.hash_id(*place) for place in places], np.uint64)
    assert column.keep
    assert len(set(hashes.tolist())) == len(names)
    for shift in (0, 54):  # the low bits find slots, the high bits the bitmaps
        filled = np.bincount((hashes >> np.uint64(shift)).astype(np.int64) & 1023, minlength=1024)
        mean = len(names) / 1024
        assert filled.max() <= mean + 8 * mean**0.5 + 8


def test_hash_id__has_the_collisions_that_the_tests_rely_on():
    values = tables.colliding()
    places, column = pairs_of(values)
    hashes = [int(ids.hash_id(*place)) for place in places]
    assert column.keep
    assert len(set(hashes[:3])) == len(set(hashes[3:5])) == len(set(hashes[5:])) == 1


# --- segments


def segments_of(column, capacity, first=0, stop=None):
    stop = len(column.chunks) if stop is None else stop
    state, parts = np.array([first, 0, 0, 0], np.int64), []
    while state[0] < stop:
        out = np.empty((capacity, 3), np.int64)
        state[2] = 0
        ids.find_segments(column.table, state, stop, out)
        assert state[2] == capacity or state[0] == stop
        parts += out[: state[2]].tolist()
    return parts


def expected_segments(chunks, first=0, stop=None):
    out = []
    for piece, chunk in list(enumerate(chunks))[first:stop]:
        row = 0
        for _, group in itertools.groupby(chunk):
            n = len(list(group))
            out.append([piece, row, n])
            row += n
    return out


@pytest.mark.parametrize("kind", [k for k in tables.KINDS if not k.startswith("codes")])
@pytest.mark.parametrize("capacity", [1, 3, 1000])
def test_find_segments__are_the_groups_of_neighbours(kind, capacity):
    rng = random.Random(7)
    values = [*tables.hostile_ids()[:60], b"aaaaaaaa", b"aaaaaaaaa", b"", b"\0"]
    chunks = [[v for v in rng.choices(values, k=30) for _ in range(rng.randint(1, 4))]
              for _ in range(4)]  # fmt: skip
    chunks.insert(1, [])
    chunks += [[b"", b"", b"a"], [b"a"], []]
    column = tables.Pieces(chunks, kind)
    assert segments_of(column, capacity) == expected_segments(chunks)
    assert segments_of(column, capacity, 1, 3) == expected_segments(chunks, 1, 3)


def test_find_segments__of_codes_may_cut_finer_but_lose_nothing():
    chunks = [[b"a", b"a", b"a", b"b"], [b"b"]]
    found = segments_of(tables.Pieces(chunks, "codes-views"), 10)
    assert sum(n for *_, n in found) == 5
    assert all(len(set(chunks[p][row : row + n])) == 1 for p, row, n in found)


@given(st.lists(st.lists(alike, max_size=12), max_size=4))
@quiet
def test_find_segments__equal_groupby(chunks):
    assert segments_of(tables.Pieces(chunks), 2) == expected_segments(chunks)


# --- codes


def codes_of(columns, size=8):
    """Codes of several columns in one code space that starts small."""
    slots, keys = np.full(size, -1, np.int64), np.empty((size // 2 + 1, 2), np.int64)
    count, out, grown = 0, [], 0
    for column in columns:
        where = [(p, r) for p, chunk in enumerate(column.chunks) for r in range(len(chunk))]
        places = np.array(where, np.int64).reshape(-1, 2)
        codes, state = np.full(len(where), -9, np.int64), np.array([0, count], np.int64)
        while True:
            ids.intern(column.table, places, state, slots, keys, codes)
            if state[0] == len(where):
                break
            grown += 1
            old, slots = keys, np.full(2 * slots.size, -1, np.int64)
            keys = np.empty((slots.size // 2 + 1, 2), np.int64)
            keys[: state[1]] = old[: state[1]]
            ids.rehash(keys, int(state[1]), slots)
        count = int(state[1])
        out.append(codes.tolist())
    return out, count, grown


def test_intern__gives_equal_bytes_one_code_over_columns_and_layouts():
    rng = random.Random(3)
    values = tables.hostile_ids()
    columns = [
        tables.Pieces([rng.choices(values, k=80), [], rng.choices(values, k=40)], kind)
        for kind in tables.KINDS
    ]
    codes, count, grown = codes_of(columns)
    known: dict[bytes, int] = {}
    for column, got in zip(columns, codes, strict=True):
        flat = [value for chunk in column.chunks for value in chunk]
        assert got == [known.setdefault(value, len(known)) for value in flat]
    assert count == len(known)
    assert grown > 2


def test_intern__tells_colliding_ids_apart():
    values = [*tables.colliding(), *reversed(tables.colliding())]
    (codes,), count, _ = codes_of([tables.Pieces([values])], 64)
    assert count == len(tables.colliding())
    assert codes == [*range(count), *reversed(range(count))]


def test_intern__of_nothing():
    assert codes_of([tables.Pieces([]), tables.Pieces([[]])])[:2] == ([[], []], 0)


# --- groups


@given(st.lists(st.integers(-1, 6), max_size=40))
@quiet
def test_group__is_a_stable_counting_sort(codes):
    offsets, order = np.full(8, 9, np.int64), np.full(len(codes), -9, np.int64)
    ids.group(np.array(codes, np.int64), offsets, order)
    for g in range(7):
        mine = order[offsets[g] : offsets[g + 1]].tolist()
        assert mine == [i for i, code in enumerate(codes) if code == g]
    assert offsets[0] == 0
    assert offsets[-1] == sum(code >= 0 for code in codes)


def test_ids__kernels_may_run_at_once():
    column = tables.Pieces([tables.hostile_ids() * 20] * 6)
    alone = segments_of(column, 64)
    with ThreadPoolExecutor(4) as pool:
        assert all(
            found == alone for found in pool.map(lambda _: segments_of(column, 64), "abcdef")
        )
