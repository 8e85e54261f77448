"""Claim measures through `score`: values, states and reasons of every kind of trace."""

from __future__ import annotations

import random
from fractions import Fraction

import pyarrow as pa
import pytest

import claim_tables
import reference_claims as plain
from claim_tables import Case
from ragcore import score
from ragcore.errors import InputError, UsageError

GOLDEN = Case(
    5, 3, ["x", "y", "z"], correct="10010", entailed="11100", covered="110",
    by_answer="100,010,001,000,000", by_reference="100,000,010",
)  # fmt: skip
FAMILY = [
    "claims.precision", "claims.recall", "claims.f1", "claims.context_recall", "context.precision",
    "context.precision_ap", "context.utilization", "noise.relevant", "noise.irrelevant",
    "hallucination", "self_knowledge", "faithfulness",
]  # fmt: skip
RAGCHECKER = [
    name if name == "context.precision_ap" else f"{name}(zero_division=ragchecker)"
    for name in FAMILY
]


def scored(folder, cases, measures, rows=None, judgments=None):
    """Scores of cases, (name, case) -> value or state."""
    given = claim_tables.all_rows(cases) if rows is None else rows
    scores = score(
        claim_tables.run_of(cases), suite=claim_tables.suite_of(folder / "suite", cases),
        judgments=claim_tables.judgments_of(given) if judgments is None else judgments,
        measures=list(measures),
    )  # fmt: skip
    return (
        scores,
        lambda name, case="a": (
            scores.value(name, case)
            if scores.state(name, case) == "ok"
            else scores.state(name, case)
        ),
    )


def test_family__of_the_worked_example(tmp_path):
    _, got = scored(tmp_path, {"a": GOLDEN}, FAMILY)
    wanted = [0.4, 2 / 3, 0.5, 2 / 3, 2 / 3, 1.0, 0.5, 0.2, 0.2, 0.2, 0.2, 0.6]
    for name, value in zip(FAMILY, wanted, strict=True):
        assert got(name) == pytest.approx(value, rel=0, abs=1e-15), name


def test_family__equals_plain_python(tmp_path):
    draw = random.Random(11)
    cases = {}
    for i in range(60):
        a, y, c = draw.randint(0, 4), draw.randint(0, 4), draw.randint(0, 4)
        rows = ["".join(draw.choice("110½x") for _ in range(n)) for n in (a, y, *[c] * (a + y))]
        cases[f"q{i}"] = Case(
            a, y, [f"c{k}" for k in range(c)], correct=rows[0], covered=rows[1],
            by_answer=",".join(rows[2 : 2 + a]), by_reference=",".join(rows[2 + a :]),
        )  # fmt: skip
    _, got = scored(tmp_path, cases, FAMILY)
    for name, case in cases.items():
        width = len(case.context or ())
        answers = case.by_answer.split(",") if case.answers else []
        references = case.by_reference.split(",") if case.references else []
        yes = lambda text: [digit == "1" for digit in text]  # noqa: E731
        wanted = plain.ragchecker(
            yes(case.correct), yes(case.covered), list(map(yes, answers)),
            list(map(yes, references)), width,
        )  # fmt: skip
        for measure, value in wanted.items():
            found = got(measure, name)
            assert found == ("na" if value is None else pytest.approx(float(value), abs=1e-15)), (
                measure, name,
            )  # fmt: skip


EMPTY = {
    "no answer claim": Case(0, 2, ["x"], covered="00", by_reference="1,0"),
    "no reference claim": Case(2, 0, ["x"], correct="00", by_answer="1,0"),
    "no context": Case(2, 2, [], correct="10", covered="10"),
    "refused": Case(2, 2, ["x"], correct="10", covered="10",
                    trace={"context_state": "budget_refused"}),
    "nothing": Case(0, 0, []),
}  # fmt: skip
NA = "na"
OF_EMPTY = {  # in the order of FAMILY
    "no answer claim": [NA, 0, NA, 0.5, 1, 1, 0, NA, NA, NA, NA, NA],
    "no reference claim": [0, NA, NA, NA, NA, NA, NA, 0, 0.5, 0.5, 0, 0.5],
    "no context": [0.5, 0.5, 0.5, 0, NA, NA, NA, 0, 0, 0.5, 0.5, 0],
    "refused": [0.5, 0.5, 0.5, 0, NA, NA, NA, 0, 0, 0.5, 0.5, 0],
    "nothing": [NA] * 12,
}
IN_RAGCHECKER = {
    "no answer claim": [0, 0, 0, 0.5, 1, 1, 0, 0, 0, 0, 0, 0],
    "no reference claim": [0, 0, 0, 0, 0, NA, 0, 0, 0, 0.5, 0, 0.5],
    "no context": [0.5, 0.5, 0.5, 0, 0, NA, 0, 0, 0, 0, 0, 0],
    "refused": [0.5, 0.5, 0.5, 0, 0, NA, 0, 0, 0, 0, 0, 0],
    "nothing": [0] * 5 + [NA] + [0] * 6,
}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_sides__are_na_and_0_as_ragchecker_has_them(tmp_path, case):
    _, got = scored(tmp_path, EMPTY, [*FAMILY, *RAGCHECKER])
    assert [got(name, case) for name in FAMILY] == OF_EMPTY[case]
    assert [got(name, case) for name in RAGCHECKER] == IN_RAGCHECKER[case]


STATES = {
    "missing": {"correct": "1 010"}, "failed": {"correct": "1!010"},
    "disputed": {"correct": "1?010"},
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_state__is_that_of_the_cells_that_a_value_needs(tmp_path, state):
    open_case = Case(**{**GOLDEN.__dict__, **STATES[state]})
    _, got = scored(tmp_path, {"a": open_case}, FAMILY)
    needs = {"claims.precision", "claims.f1", "noise.relevant", "noise.irrelevant",
             "hallucination", "self_knowledge"}  # fmt: skip
    assert {name for name in FAMILY if got(name) == state} == needs


@pytest.mark.parametrize(("digit", "state"), [(" ", "missing"), ("!", "failed"), ("?", "disputed")])
def test_state__of_one_cell_of_a_matrix(tmp_path, digit, state):
    by = GOLDEN.by_reference.replace("010", f"01{digit}")
    _, got = scored(tmp_path, {"a": Case(**{**GOLDEN.__dict__, "by_reference": by})}, FAMILY)
    needs = {"claims.context_recall", "context.precision", "context.precision_ap",
             "context.utilization", "noise.relevant", "noise.irrelevant"}  # fmt: skip
    assert {name for name in FAMILY if got(name) == state} == needs


def test_state__without_columns_labels_or_verdicts(tmp_path):
    bare = {"a": Case(None, 3, None, covered="110"), "b": GOLDEN}
    scores, got = scored(tmp_path, bare, FAMILY, rows=claim_tables.rows_of("a", bare["a"]))
    assert got("claims.recall") == 2 / 3
    assert {got(name) for name in FAMILY if name != "claims.recall"} == {"missing"}
    reasons = {r["measure"]: r["reason"] for r in scores.table().to_pylist() if r["case_id"] == "b"}
    assert reasons["claims.precision"] == "no-verdict"
    failed = {"a": Case(None, 3, None, trace={"error": "timeout"}), "b": GOLDEN}
    scores, got = scored(tmp_path / "f", failed, FAMILY)
    assert {got(name) for name in FAMILY} == {"failed"}


def test_lost_case__claims_nothing_and_is_shown_nothing(tmp_path):
    cases = {"a": GOLDEN, "b": GOLDEN}
    run = claim_tables.run_of(cases).slice(0, 1)
    scores = score(
        run, suite=claim_tables.suite_of(tmp_path / "s", cases), measures=FAMILY,
        judgments=claim_tables.judgments_of(claim_tables.rows_of("a", GOLDEN)),
    )  # fmt: skip
    for name in ("claims.recall", "claims.context_recall"):
        assert scores.value(name, "b") == 0.0
    for name in ("claims.precision", "faithfulness", "context.precision"):
        assert scores.state(name, "b") == "na"


def test_chunk_that_stands_twice__has_its_verdict_in_both_places(tmp_path):
    twice = Case(1, 1, ["x", "x", "y"], correct="1", covered="1")
    rows = [*claim_tables.rows_of("a", twice)]
    for relation in ("chunk_entails", "chunk_entails_reference"):
        for chunk, word in (("x", "yes"), ("y", "no")):
            rows.append({"case_id": "a", "relation": relation, "claim": 0, "verdict": word,
                         "evidence": [chunk]})  # fmt: skip
    _, got = scored(tmp_path, {"a": twice}, FAMILY, rows=rows)
    assert got("context.precision") == 2 / 3
    assert got("faithfulness") == 1.0


def test_precision__by_relevance(tmp_path):
    rows = [{"case_id": "a", "relation": "relevance", "verdict": word, "evidence": [chunk]}
            for chunk, word in zip("xyz", ("no", "yes", "yes"), strict=True)]  # fmt: skip
    names = ["context.precision(by=relevance)", "context.precision_ap(by=relevance)"]
    _, got = scored(tmp_path, {"a": GOLDEN}, [*names, "context.precision"], rows=rows)
    assert got(names[0]) == 2 / 3
    assert got(names[1]) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert got("context.precision") == "missing"


def test_parameters__of_other_words_are_refused(tmp_path):
    for name in (
        "faithfulness(zero_division=ragas)", "context.precision(by=rank)",
        "claims.contradicted(by=nobody)", "claims.unsupported_high_stakes(of=all)",
    ):  # fmt: skip
        with pytest.raises(UsageError, match=r"one of|reference or answer"):
            scored(tmp_path / name, {"a": GOLDEN}, [name])


def test_rung__is_the_lowest_of_the_verdicts_behind(tmp_path):
    rows = claim_tables.rows_of("a", GOLDEN)
    for row in rows:
        row["rung"] = "human" if row["relation"] == "correct" else "rule"
    scores, _ = scored(tmp_path, {"a": GOLDEN}, ["claims.precision", "self_knowledge"], rows=rows)
    found = {row["measure"]: row["rung"] for row in scores.table().to_pylist()}
    assert found == {"claims.precision": "human", "self_knowledge": "rule"}


def test_micro__pools_claims_over_cases(tmp_path):
    cases = {"a": GOLDEN, "b": Case(1, 1, ["x"], correct="1", covered="1")}
    scores, _ = scored(tmp_path, cases, ["claims.precision", "micro(claims.precision)"])
    assert scores.mean("claims.precision") == pytest.approx(0.7)
    assert scores.mean("micro(claims.precision)") == pytest.approx(0.5)


def test_names__of_other_tools_mean_the_same(tmp_path):
    same = {
        "claim_recall": "claims.context_recall", "context.recall": "claims.context_recall",
        "noise_sensitivity_in_relevant": "noise.relevant", "P_correct": "claims.precision",
        "correct.precision": "claims.precision", "F_context": "grounded.faithfulness",
        "P_grounded": "grounded.precision", "R_required": "grounded.recall",
        "F1_grounded": "grounded.f1",
    }  # fmt: skip
    _, got = scored(tmp_path, {"a": GOLDEN}, [*same, *dict.fromkeys(same.values())])
    for other, ours in same.items():
        assert got(other) == got(ours) != "missing", other


def test_claim__beyond_those_recorded_is_refused(tmp_path):
    rows = [{"case_id": "a", "relation": "correct", "claim": 5, "verdict": "yes"}]
    with pytest.raises(InputError, match="claim 5 of case 'a'"):
        scored(tmp_path, {"a": GOLDEN}, ["claims.precision"], rows=rows)


# --- grounded correctness


GROUNDED = ["P_correct", "F_context", "P_grounded", "R_required", "F1_grounded"]


def test_grounded__of_the_worked_example(tmp_path):
    case = Case(4, 4, correct="1101", entailed="1011", covered="1110")
    _, got = scored(tmp_path, {"a": case}, [*GROUNDED, "claims.unsupported", "trace.adherence"])
    assert [got(name) for name in GROUNDED] == [0.75, 0.75, 0.5, 0.75, 0.6]
    assert got("claims.unsupported") == 0.25
    assert got("trace.adherence") == 0.0


REQUIRED = [{"required": True}, {"required": False}, {"required": None}]


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (Case(1, REQUIRED, correct="1", entailed="1", covered="101"), [1, 1, 1, 1, 1]),
        (Case(1, REQUIRED, correct="1", entailed="1", covered="010"), [1, 1, 1, 0, 0]),
        (Case(0, REQUIRED), [NA, NA, NA, 0, NA]),
        (Case(0, REQUIRED, case={"expected_state": "answer"}), [NA, NA, NA, 0, NA]),
        (Case(0, REQUIRED, case={"expected_state": "abstain"}), [NA, NA, NA, NA, NA]),
        (Case(0, REQUIRED, case={"answerable": False}), [NA, NA, NA, NA, NA]),
        (Case(1, [{"required": False}], correct="0", entailed="0", covered="1"),
         [0, 0, 0, NA, NA]),
        (Case(1, 1, correct="0", entailed="1", covered="0"), [0, 1, 0, 0, 0]),
    ],
)  # fmt: skip
def test_grounded__when_a_side_is_empty(tmp_path, case, wanted):
    _, got = scored(tmp_path, {"a": case}, GROUNDED)
    assert [got(name) for name in GROUNDED] == wanted


def test_contradicted__apart_from_not_entailed(tmp_path):
    names = ["claims.contradicted", "claims.contradicted(by=context)", "claims.precision"]
    case = Case(4, 0, correct="1x0x", entailed="x100")
    _, got = scored(tmp_path, {"a": case}, names)
    assert [got(name) for name in names] == [0.5, 0.25, 0.25]


STAKES = [{"high_stakes": True}, {"high_stakes": True}, {"high_stakes": False}]


def test_high_stakes__counts_what_is_said_and_stands_on_nothing(tmp_path):
    name = "claims.unsupported_high_stakes"
    cases = {
        "a": Case(3, STAKES, ["x"], covered="111", by_reference="1,0,0"),
        "b": Case(3, STAKES, ["x"], covered="110", by_reference="0,0,0"),
        "c": Case(3, STAKES, ["x"], covered="001", by_reference="0,0,0"),
        "d": Case(0, STAKES, []),
    }  # fmt: skip
    scores, got = scored(tmp_path, cases, [name, f"{name}(of=answer)"])
    assert [got(name, case) for case in cases] == [1, 2, 0, 0]
    assert scores.mean(name) == 3
    assert got(f"{name}(of=answer)") == "missing"
    run = claim_tables.run_of({"a": Case(3, 0, entailed="100")})
    flagged = pa.array([[{"high_stakes": True}, {"high_stakes": True}, {"high_stakes": None}]])
    run = run.set_column(run.column_names.index("claims"), "claims", flagged)
    rows = claim_tables.rows_of("a", Case(3, 0, entailed="100"))
    scores = score(
        run, suite=claim_tables.suite_of(tmp_path / "o", {"a": Case(3, 0)}),
        judgments=claim_tables.judgments_of(rows), measures=[f"{name}(of=answer)"],
    )  # fmt: skip
    assert scores.value(f"{name}(of=answer)", "a") == 1


def test_completeness__over_required_supported_claims(tmp_path):
    case = Case(0, [{"required": r} for r in (True, True, False, None)], ["x", "y"],
                covered="1011", by_reference="10,01,11,00")  # fmt: skip
    _, got = scored(tmp_path, {"a": case, "b": Case(0, 1, [], covered="0")}, ["completeness"])
    assert got("completeness") == 0.5
    assert got("completeness", "b") == "na"


# --- nuggets


def test_nuggets__of_the_worked_example(tmp_path):
    kinds = ("vital", "vital_strict", "all", "all_strict", "weighted", "weighted_strict")
    marks = [{"vital": v} for v in (True, True, True, False, False)]
    cases = {
        "a": Case(1, marks, covered="1½010"), "okay": Case(1, marks[3:], covered="½0"),
        "none": Case(1, 0), "silent": Case(0, marks),
        "open": Case(1, [{"vital": None}], covered="1"),
    }  # fmt: skip
    _, got = scored(tmp_path, cases, ["nuggets.*"])

    def of(case):
        return [got(f"nuggets.{kind}", case) for kind in kinds]

    third = pytest.approx(1 / 3)
    assert of("a") == [0.5, third, 0.5, 0.4, 0.5, pytest.approx(float(Fraction(3, 8)))]
    assert of("okay") == [NA, NA, 0.25, 0, 0.25, 0]
    assert of("none") == [NA] * 6
    assert of("silent") == [0] * 6
    assert of("open") == ["missing", "missing", 1, 1, "missing", "missing"]
