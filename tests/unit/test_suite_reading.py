"""What a ladder is said to show: against plain arithmetic, and never what its numbers do not."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from ragcore.catalogue import reading
from ragcore.catalogue.entries import entry
from ragcore.catalogue.ladder import Wanted, run_suite
from ragcore.catalogue.rungs import Rung
from ragcore.saturation import Saturation

TWO_SCOPES = (
    '\n[[scope]]\nname = "own"\nfilters = ["doc_id"]\n[[scope]]\nname = "all"\n'
    '[[scope]]\nname = "again"\n\n[files'
)


@pytest.fixture
def scoped(shore):
    """The collection in three scopes, of which the last two search the same chunks."""
    toml = shore / "catalogue" / "shore" / "suite.toml"
    text = toml.read_text().replace('"doc_id"', '"chunk_id=d1"')
    scopes = TWO_SCOPES.replace('"doc_id"', '"chunk_id=d1"')
    toml.write_text(text.replace("\n[files", scopes, 1))
    wanted = Wanted(strategies=("bm25",))
    return run_suite(entry("shore"), data=shore / "data", wanted=wanted)


# --- who is best


def test_best__is_among_runs_that_search_the_same_chunks(scoped):
    assert [one.name for one in scoped.rungs] == ["bm25 own", "bm25 all", "bm25 again"]
    # bm25 finds one of four among its own chunk, all of them among all: another task, no gain.
    assert scoped.scores.means("bm25 own")["R@1"] == 0.25
    assert scoped.scores.means("bm25 all")["R@1"] == 1.0
    for kind in reading.types_of(scoped, "R@1"):
        assert kind.best == []
    assert not [s for s in reading.sentences(scoped) if "best" in s]


@pytest.mark.parametrize(
    ("pairs", "group", "better", "best"),
    [
        ([(9, 0.5), (9, 0.7), (9, 0.6)], [0, 1, 2], "more", [1]),
        ([(9, 0.5), (9, 0.7), (9, 0.6)], [0, 2], "more", [2]),
        ([(9, 0.5), (9, 0.7), (9, 0.6)], [0, 1, 2], "less", [0]),
        ([(9, 0.5), (9, 0.7), (9, 0.6)], [0, 1, 2], "neither", []),
        ([(9, 0.7), (9, 0.7), (9, 0.6)], [0, 1, 2], "more", [0, 1]),
        ([(9, 0.1 + 0.2), (9, 0.3)], [0, 1], "more", []),  # alike but for rounding
        ([(9, 0.5), (8, 0.7)], [0, 1], "more", []),  # means of other cases
        ([(9, 0.5), (0, None)], [0, 1], "more", []),
        ([(9, 0.5)], [0], "more", []),
        ([], [], "more", []),
    ],
)
def test_best__knows_direction_ties_and_other_cases(pairs, group, better, best):
    assert reading._best(pairs, group, better) == best


def test_best__alone_is_said_of_whom(shore):
    run = run_suite(entry("shore"), data=shore / "data")
    kinds = [reading.Type("big", [20, 20], [1.0, 0.0], ["bm25"])]
    run_kinds, reading_types = reading.types_of, "bm25 alone has the best mean: big"
    try:
        reading.types_of = lambda *_: kinds
        said = reading.sentences(run)
    finally:
        reading.types_of = run_kinds
    assert reading_types in said
    assert "of the two alone, bm25 has the better mean on big" in said


# --- gains


def test_steps__of_a_measure_that_is_better_when_it_falls(shore):
    run = run_suite(
        entry("shore"), data=shore / "data", wanted=Wanted(measures=("Unjudged@1", "R@1"))
    )
    # bm25 puts the judged chunk first; dense-exact puts another there, that nobody judged
    assert run.scores.means("bm25")["Unjudged@1"] == 0.0
    assert run.scores.means("dense-exact")["Unjudged@1"] == 1.0
    (said,) = [s for s in reading.sentences(run) if "->" in s]
    assert said.endswith("0 won, 4 lost: a loss")
    assert [one.best for one in reading.types_of(run, "Unjudged@1")] == [["bm25"], ["bm25"]]


@pytest.mark.parametrize(
    ("better", "low", "said"),
    [("more", 0.1, "a gain"), ("more", -0.9, "a loss"), ("less", 0.1, "a loss"),
     ("less", -0.9, "a gain"), ("neither", 0.1, "more, neither better nor worse"),
     ("neither", -0.9, "less, neither better nor worse"), ("more", -0.1, "noise")],
)  # fmt: skip
def test_step__says_a_gain_for_what_is_better(shore, better, low, said):
    run = run_suite(entry("shore"), data=shore / "data")
    from ragcore import contrast
    from ragcore.plan import Plan

    cell = contrast.of(run.scores, 0, 1, contrast.Settings(Plan(), (), 0.95)).whole()["R@1"]
    moved = replace(cell.paired, low=low, high=low + 0.2, delta=low + 0.1)
    assert reading._step("X", "a", "b", moved, better).endswith(said)


# --- what is left


def rooms(*found: Saturation | None) -> list[str]:
    class Run:
        pass

    run = Run()
    run.rungs = [Rung(f"r{i}", "bm25", None) for i in range(len(found))]  # pyright: ignore
    for one, room in zip(run.rungs, found, strict=True):  # pyright: ignore
        if room is not None:
            one.room["M"] = room
    return reading._rooms(run, "M")  # pyright: ignore


LIVE, NONE = Saturation("live", 5, 9), Saturation("", 0, 0)
FULL, CHANCE = Saturation("saturated", 0, 9), Saturation("chance-dominated", 5, 9, 0.4)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((LIVE, LIVE), ["M is live for every run: neither saturated nor floored nor by chance"]),
        ((LIVE, NONE), ["M is live for r0"]),
        ((LIVE, None), ["M is live for r0"]),
        ((NONE, NONE), []),
        ((LIVE, FULL), ["M can show no gain, or no loss, over r1 (saturated, 0 open)",
                        "M is live for r0"]),
        ((CHANCE, LIVE), ["M is dominated by chance; this share of what is relevant is found by a "
                          "random ranking up to its cut-off: r0 (0.400)", "M is live for r1"]),
    ],
)  # fmt: skip
def test_rooms__say_live_of_those_that_are(found, said):
    assert rooms(*found) == said


# --- chance


def test_chance__is_of_every_question_s_own_pool(shore):
    """Half of the questions look among 3 chunks, half among all 4: no mean pool tells that."""
    rung = Rung("x", "bm25", None)  # pyright: ignore
    rung.pools = {"a": [1], "b": [400], "c": [4, 2], "d": [0]}
    for k in (1, 2, 5):
        shares = [min(Fraction(1), Fraction(k, 1)), min(Fraction(1), Fraction(k, 400)),
                  (min(Fraction(1), Fraction(k, 4)) + min(Fraction(1), Fraction(k, 2))) / 2,
                  Fraction(0)]  # fmt: skip
        assert rung.random(k) == pytest.approx(float(sum(shares) / 4), abs=1e-15)
        assert rung.random(k, ["b"]) == pytest.approx(k / 400)
    rung.valued = frozenset(("a",))
    assert rung.random(1) == 1.0
    assert math.isnan(rung.random(1, []))
    assert rung.pool == pytest.approx((1 + 400 + 4 + 2) / 5)


def test_rooms__of_pools_of_many_sizes_are_judged_by_what_chance_finds(tmp_path, shared_data):
    run = run_suite(
        entry("qasper"), tmp_path / "w", data=shared_data,
        wanted=Wanted(strategies=("bm25",), measures=("R@10", "R@1")),
    )  # fmt: skip
    own, pooled = run.rungs
    units: dict[str, int] = {}
    from ragcore.index.opened import open_index

    for name in open_index(run.folder / "index").documents["doc_id"].to_pylist():
        units[name] = units.get(name, 0) + 1
    cases = run.suite.cases
    row = dict(zip(run.scores.per_case("R@10", 0), run.scores.per_case("R@10", 0).values(),
                   strict=True))  # fmt: skip
    sizes = [
        units[doc] for case, doc in zip(cases["case_id"].to_pylist(), cases["doc_id"].to_pylist(),
                                        strict=True) if row.get(case) is not None
    ]  # fmt: skip
    chance = sum(min(Fraction(1), Fraction(10, n)) for n in sizes) / len(sizes)
    assert own.random(10) == pytest.approx(float(chance), abs=1e-12)
    # ten of a mean pool of 56 are less than a quarter; of the pools themselves they are more
    assert 10 / own.pool < 0.25 < float(chance)
    assert own.room["R@10"].state == "chance-dominated"
    assert own.room["R@10"].random == pytest.approx(float(chance), abs=1e-12)
    assert own.room["R@1"].state == "live"
    assert pooled.room["R@10"].state == "live"
    said = [s for s in reading.sentences(run) if "by chance" in s or "live" in s]
    assert said == [
        "R@10 is dominated by chance; this share of what is relevant is found by a random ranking "
        f"up to its cut-off: bm25 per-paper ({float(chance):.3f})",
        "R@10 is live for bm25 pooled",
    ]
