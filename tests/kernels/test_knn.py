"""Exact nearest neighbours: those of a float64 scan, to the last bit, whatever the input."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import knn, knn_float, knn_int8, knn_scores, knn_select, knn_tiles
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.knn import METRICS, ExactIndex, Neighbours
from ragcore_kernels.knn_scores import survey
from ragcore_kernels.knn_select import begin
from ragcore_kernels.layout import frozen
from reference_knn import nearest, scores_of

METHODS = ("float32", "int8")
HOSTILE = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, -3e38, 3.4e38, 1e19, 1e-19, 7e4, np.inf, np.nan]


def check(index, queries, k, eligible=None, threads=1):
    found = index.search(queries, k, eligible=eligible, threads=threads)
    assert isinstance(found, Neighbours)
    assert found.rows.shape == found.scores.shape == (len(queries), k)
    assert (found.rows.dtype, found.scores.dtype) == (np.int32, np.float64)
    for q, query in enumerate(queries):
        rows, scores = nearest(index.vectors, query, k, index.metric, eligible)
        n = int(found.counts[q])
        assert found.rows[q, :n].tolist() == rows
        assert found.scores[q, :n].tolist() == scores
        assert (found.rows[q, n:] == -1).all()
        assert (found.scores[q, n:] == -np.inf).all()
    bad = ~np.isfinite(np.asarray(queries, np.float32)).all(1)
    assert found.n_queries_not_finite == bad.sum()
    return found


@st.composite
def problems(draw):
    """Vectors and queries of any kind: few distinct ones, many magnitudes, hostile numbers."""
    n, d = draw(st.integers(0, 140)), draw(st.sampled_from([1, 2, 3, 7, 8, 9, 16, 31, 40]))
    m, k = draw(st.integers(0, 15)), draw(st.sampled_from([1, 2, 3, 10, 139, 140, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["normal", "integers", "copies", "scales", "hostile", "far"]))
    if kind == "integers":
        x, q = rng.integers(-2, 3, (n, d)), rng.integers(-2, 3, (m, d))
    elif kind == "hostile":
        x, q = rng.choice(HOSTILE, (n, d)), rng.choice(HOSTILE[:-2], (m, d))
        x[rng.random(n) < 0.7] = rng.standard_normal(d)
        if m:
            q[-1] = rng.choice(HOSTILE, d)
    else:
        x, q = rng.standard_normal((n, d)), rng.standard_normal((m, d))
        if kind == "copies" and n:
            x = x[rng.integers(0, min(n, 3), n)]
        if kind == "scales":
            x *= 10.0 ** rng.integers(-20, 20, (n, 1))
            q *= 10.0 ** rng.integers(-20, 20, (m, 1))
        if kind == "far":
            x, q = x + 1000.0, q + 1000.0
    half = draw(st.booleans())
    eligible = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.8]))
    with np.errstate(all="ignore"):
        x = x.astype(np.float16 if half else np.float32)
    return x, q.astype(np.float32), k, draw(st.sampled_from([None, eligible]))


@given(problems(), st.sampled_from(METRICS), st.sampled_from(METHODS), st.sampled_from([1, 2, 3]))
@settings(max_examples=250 if JIT else 30)
def test_search__equals_a_float64_scan(problem, metric, method, threads):
    x, q, k, eligible = problem
    check(ExactIndex(x, metric, method), q, k, eligible, threads)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("method", METHODS)
def test_search__has_the_same_bits_for_any_threads_and_batches(metric, method, monkeypatch):
    rng = np.random.default_rng(3)
    n = 3000 if JIT else 300
    x = rng.standard_normal((n, 24)).astype(np.float32)
    x[n // 2 :: 3] = x[: len(x[n // 2 :: 3])]
    q = np.concatenate([x[:20], rng.standard_normal((20, 24)).astype(np.float32)])
    index = ExactIndex(x, metric, method)
    whole = check(index, q, 7)
    for threads, queries in ((2, 768), (3, 5), (1, 1)):
        monkeypatch.setattr(knn, "QUERIES", queries)
        other = index.search(q, 7, threads=threads)
        assert other.rows.tobytes() == whole.rows.tobytes()
        assert other.scores.tobytes() == whole.scores.tobytes()
    parts = [index.search(q[i : i + 1], 7) for i in range(3)]
    assert [p.rows[0].tolist() for p in parts] == whole.rows[:3].tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("method", METHODS)
def test_search__survives_ties_of_everything(metric, method):
    n = 2000 if JIT else 300
    x = np.ones((n, 5), np.float32)
    q = np.array([[1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [-1, -1, -1, -1, -1]], np.float32)
    for k in (1, 60):
        found = check(ExactIndex(x, metric, method), q, k, threads=2)
        assert (found.rows == np.arange(k)).all()


@pytest.mark.parametrize("method", METHODS)
def test_search__reads_a_read_only_map_and_copies_nothing(tmp_path, method):
    x = np.random.default_rng(0).standard_normal((90, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    index = ExactIndex(mapped, "ip", method)
    assert np.shares_memory(index.vectors, mapped)
    check(index, x[:3], 5, np.arange(90) % 2 == 0)
    check(index, x[:3], 5, (np.arange(90) % 2 == 0).astype(np.uint8))


def test_search__streams_half_floats(monkeypatch):
    monkeypatch.setattr(knn, "CHUNK", 32)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((100, 9)).astype(np.float16)
    for method in METHODS:
        for threads in (1, 2):
            check(ExactIndex(x, "l2", method), x[:4].astype(np.float32), 12, threads=threads)


@pytest.mark.parametrize("scale", [1.0, 1e-13, 3e-16, 1e-30, 1e16, 1e30])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("method", METHODS)
def test_search__tells_near_ties_apart_at_any_magnitude(method, metric, scale):
    rng = np.random.default_rng(11)
    base = rng.standard_normal(24)
    for spread in (0.0, 1e-7, 1e-5, 1e-2):
        x = ((base + spread * rng.standard_normal((150, 24))) * scale).astype(np.float32)
        q = np.stack([base, -base, x[3] / scale, base[::-1]]).astype(np.float32)
        if metric == "l2":  # beside those to which all vectors look alike
            q = np.concatenate([q, (q * np.float64(scale)).astype(np.float32)])
        check(ExactIndex(x, metric, method), q, 5)


@pytest.mark.skipif(not JIT, reason="too slow without compilation")
@pytest.mark.parametrize("number", [0.1, 0.3, 0.7, 1.1])
def test_search__is_not_led_astray_by_sums_that_drift(number):
    d = 1 << 14
    even = np.full(d, number, np.float32)  # float32 loses a little at each step, always alike
    lumps = np.zeros((40, d), np.float32)
    lumps[:, 0] = np.float64(even.sum(dtype=np.float64)) * (1 + np.linspace(-4e-6, 4e-6, 40))
    x = np.concatenate([lumps[:20], even[None], lumps[20:]])
    for method in METHODS:
        for k in (1, 15, 21):
            check(ExactIndex(x, "ip", method), np.ones((2, d), np.float32), k)


@pytest.mark.skipif(not JIT, reason="too slow without compilation")
def test_search__takes_more_dimensions_than_a_bound_holds_for():
    x = np.zeros((3, 1 << 17), np.float32)
    x[0, 5], x[1, 7], x[2, :] = 2, 1, 1e-3
    for method in METHODS:
        check(ExactIndex(x, "cosine", method), x[:2], 3)


# --- what a filter knows


@pytest.mark.parametrize("metric", METRICS)
@given(
    st.integers(0, 2**32), st.sampled_from([1, 5, 33, 200]), st.sampled_from([1e-12, 1.0, 1e12]),
    st.sampled_from([0, 1, 100, 1e6]),
)  # fmt: skip
@settings(max_examples=100 if JIT else 20)
def test_codes__lose_no_more_than_they_say(metric, seed, d, scale, away):
    rng = np.random.default_rng(seed)
    m, n, code = 5, 40, METRICS.index(metric)
    far = away * rng.standard_normal(d)
    x = ((rng.standard_normal((n, d)) ** 3 + far) * scale).astype(np.float32)
    q = (far + rng.standard_normal((m, d)) ** 3).astype(np.float32)
    x[:5], x[5] = q, 0
    norms, q_norms = np.empty(n), np.empty(m)
    d4 = -(-d // 4)
    codes, meta = np.full(2 * d4 * 128, 128, np.uint8), np.zeros(2 * 128, np.float32)
    words, limits = np.empty((1 + d4) * 12, np.int32), np.empty(48, np.float32)
    state = np.empty((m, knn_select.width(1)))
    x, q = frozen(x, np.float32), frozen(q, np.float32)
    survey(x, norms)
    survey(q, q_norms)
    begin(q_norms, limits, state)
    centre = np.empty(d)
    knn_int8.centre_of(x, norms, code, centre)
    knn_int8.encode(x, 0, norms, code, centre, codes, meta)
    knn_int8.code_queries(q, code, centre, words.view(np.int8), words, limits, state)
    found = np.empty((2, 12 * 32), np.float32)
    for tile in range(2):
        knn_int8.plain_tile_bytes(codes, tile * d4 * 128, words, 0, d4, found[tile])
    found = found.reshape(2, 12, 32).transpose(1, 0, 2).reshape(12, 64)[:m, :n]
    found = found.astype(np.float64)
    scale_, u, v, h = meta.astype(np.float64).reshape(2, 4, 32).transpose(1, 0, 2).reshape(4, 64)
    for i in range(m):
        own = scores_of(x, q[i], metric)
        if state[i, knn_select.PER_U] == np.inf:  # it is scored exactly
            continue
        norm = state[i, knn_select.NORM]
        value = {"ip": own, "cosine": own * norm, "l2": (own + norm**2) / 2}[metric]
        about = found[i] * scale_[:n] * limits[4 * i] + state[i, knn_select.SHIFT]
        error = state[i, 1] * u[:n] + state[i, 2] * v[:n] + state[i, 3]
        held = h[:n] > -np.inf  # else it is scored exactly
        assert (about + error - h[:n] >= value)[held].all()
        assert (about - error - h[:n] * (1 + 4e-6) <= value)[held].all()


# --- what was found


def test_index__counts_what_it_met():
    x = np.array([[0, 0], [np.nan, 1], [1, 1], [3, 4], [np.inf, 0]], np.float32)
    index = ExactIndex(x, "cosine")
    assert (index.n_zero, index.n_not_finite) == (1, 2)
    assert index.norm_range == (pytest.approx(2**0.5, abs=1e-15), 5.0)
    assert ExactIndex(x[:2]).norm_range == (0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.zeros((2, 2), np.float64),), "astype"),
        ((np.zeros(2, np.float32),), "matrix"),
        ((np.zeros((2, 4), np.float32)[:, ::2],), "C-contiguous"),
        ((np.zeros((2, 2), np.float32), "dot"), "cosine"),
        ((np.zeros((2, 2), np.float32), "ip", "fast"), "int8"),
    ],
)
def test_index__refuses_what_it_cannot_read(arguments, said):
    with pytest.raises(ValueError, match=said):
        ExactIndex(*arguments)


def test_search__refuses_what_does_not_fit():
    index = ExactIndex(np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match=r"\(m, 2\)"):
        index.search(np.ones((1, 3), np.float32), 1)
    with pytest.raises(ValueError, match="at least 1"):
        index.search(np.ones((1, 2), np.float32), 0)
    with pytest.raises(ValueError, match="eligible"):
        index.search(np.ones((1, 2), np.float32), 1, eligible=np.ones(2, bool))


def test_search__takes_queries_too_great_for_float32():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ExactIndex(np.ones((3, 2), np.float32)).search(np.full((1, 2), 1e300), 1)
    assert (found.counts.tolist(), found.n_queries_not_finite) == ([0], 1)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    for module in (knn_select, knn_float, knn_int8, knn_scores):
        for name, value in vars(module).items():
            if type(getattr(value, "_cache", None)).__name__ == "_Cache":
                assert compiled_count(value) <= 1, name


def test_features__are_those_of_the_compiler():
    assert isinstance(knn_tiles.has_vnni(), bool)
    assert JIT or not knn_tiles.cpu_features()


# --- published cases


@pytest.fixture(scope="module")
def cases(conformance):
    lines = (conformance / "cases.jsonl").read_text("utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def test_case__more_neighbours_than_live_documents(cases):
    case = cases["RC-085"]["input"]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case["n_docs"], 4)).astype(np.float32)
    live = np.arange(case["n_docs"]) >= case["deleted"]
    q = rng.standard_normal((case["queries"], 4)).astype(np.float32)
    found = check(ExactIndex(x), q, case["k"], live)
    assert found.counts.tolist() == [3, 3]


def test_case__inner_product_is_not_cosine(cases):
    case = cases["RC-087"]
    names, x = zip(*case["input"]["vectors"].items(), strict=True)
    x, q = np.array(x, np.float32), np.array([case["input"]["query"]], np.float32)
    for metric in ("cosine", "ip"):
        index = ExactIndex(x, metric)
        top = names[index.search(q, 1).rows[0, 0]]
        assert top == case["expected"][f"{metric}_top1"]
        assert any(case["expected"]["warning"] in w for w in index.warnings()) == (metric == "ip")


def test_case__zero_and_nan_vectors(cases):
    case = cases["RC-088"]
    names, x = zip(*case["input"]["vectors"].items(), strict=True)
    x, q = np.array(x, np.float32), np.array([case["input"]["query"]], np.float32)
    index = ExactIndex(x, "cosine")
    found = index.search(q, case["input"]["k"])
    assert [names[i] for i in found.rows[0, : found.counts[0]]] == case["expected"]["exact"]
    assert index.warnings() == case["expected"]["warnings"]


def test_case__near_ties_are_those_of_float64():
    rng = np.random.default_rng(89)
    x = rng.standard_normal((1000 if JIT else 200, 16))
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    x[1] = x[0] + np.float32(1e-7)
    for metric in METRICS:
        found = check(ExactIndex(x, metric), x[:10], 10)
        assert set(found.rows[0, :2].tolist()) == {0, 1}


def test_case__scores_convert_to_the_distances_of_others(cases):
    case = cases["RC-090"]
    a, b = np.array(case["input"]["pair"], np.float32)[:, None]
    score = {m: float(ExactIndex(b, m).search(a, 1).scores[0, 0]) for m in METRICS}
    assert score == {m: float(scores_of(b, a[0], m)[0]) for m in METRICS}
    found = {
        "l2_faiss": -score["l2"], "l2_true": (-score["l2"]) ** 0.5, "ip": score["ip"],
        "ip_hnswlib": 1 - score["ip"], "cosine_distance": 1 - score["cosine"],
    }  # fmt: skip
    assert found == pytest.approx(case["expected"], abs=1e-6)
