"""Packed judgments mean what the same verdicts mean one a row; what does not fit is refused."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import claim_tables
from claim_tables import YES_NO, Case
from ragcore import schema, score
from ragcore.errors import InputError
from ragcore.judgments import read_judgments
from ragcore_kernels import verdict_lists
from ragcore_kernels import verdicts as kernel_verdicts
from ragcore_kernels._jit import JIT

MEASURES = ["claims.*", "context.precision", "faithfulness", "noise.*", "grounded.*", "nuggets.all"]
WORDS = schema.VERDICTS
KINDS = {
    "dictionary": pa.list_(pa.dictionary(pa.int8(), pa.string())),
    "string": pa.large_list(pa.string()), "int8": pa.list_(pa.int8()),
    "int64 view": pa.list_view(pa.int64()),
}  # fmt: skip


def world(seed):
    draw = random.Random(seed)
    cases = {}
    for i in range(20):
        a, y, c = draw.randint(0, 3), draw.randint(0, 3), draw.randint(0, 3)
        rows = ["".join(draw.choice("1100½x?!  ") for _ in range(n))
                for n in (a, a, y, *[c] * (a + y))]  # fmt: skip
        cases[f"q{i}"] = Case(
            a, [{"required": True}] * y, [f"c{draw.randint(0, 2)}" for k in range(c)],
            correct=rows[0], entailed=rows[1], covered=rows[2],
            by_answer=",".join(rows[3 : 3 + a]), by_reference=",".join(rows[3 + a :]),
        )  # fmt: skip
    return cases


RELATIONS = {
    "correct": "correct", "entailed": "entailed", "covered": "covered",
    "chunk_entails": "by_answer", "chunk_entails_reference": "by_reference",
}  # fmt: skip


def packed(cases, kind, named=False):
    rows = []
    for name, case in cases.items():
        for relation, attribute in RELATIONS.items():
            words = [YES_NO.get(d) for d in getattr(case, attribute) if d != ","]
            if "int" in kind:
                words = [None if w is None else WORDS.index(w) for w in words]
            row = {"case_id": name, "relation": relation, "verdicts": words}
            if named and attribute.startswith("by_"):
                row["evidence"] = case.ids
            rows.append(row)
    return claim_tables.packed_of(rows, KINDS[kind])


def table(folder, cases, judgments, run=None):
    scores = score(
        claim_tables.run_of(cases) if run is None else run, judgments=judgments,
        suite=claim_tables.suite_of(folder, cases), measures=MEASURES, names=["r"],
    )  # fmt: skip
    return scores.table(), scores.audits[0].counts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_packed__equals_one_verdict_a_row(tmp_path, kind, named):
    cases = world(len(kind) + named)
    for case in cases.values():  # a chunk that stands twice would be spoken of twice
        case.context = tuple(f"c{k}" for k in range(len(case.context or ())))
    long = claim_tables.judgments_of(claim_tables.all_rows(cases))
    wanted, counts = table(tmp_path / "s", cases, long)
    found, ours = table(tmp_path / "s", cases, packed(cases, kind, named))
    assert found.equals(wanted)
    assert ours == counts or named  # then places that nobody judged are counted, too
    half = len(long) // 2
    both, _ = table(tmp_path / "s", cases, [packed(cases, kind, named), long.slice(half)])
    assert both.equals(wanted)


def test_packed__goes_to_its_run_language_and_repeat(tmp_path):
    cases = {"a": Case(2, 1, ["x"])}
    run = pa.table({
        "case_id": ["a"] * 3, "lang": [None] * 3, "repeat": pa.array([0, 1, 2], pa.int16()),
        "ranked": [["d"]] * 3, "claims": [[{"text": ""}] * 2] * 3,
    })  # fmt: skip
    base = {"case_id": "a", "relation": "correct"}
    rows = [
        {**base, "verdicts": ["yes", "yes"], "repeat": 0},
        {**base, "verdicts": ["no", "yes"], "repeat": 1},
        {**base, "verdicts": ["no", "no"], "repeat": 2, "run": "r"},
        {**base, "verdicts": ["yes", "yes"], "repeat": 2, "run": "other"},
        {**base, "verdicts": ["yes", "yes"], "case_id": "nobody"},
        {**base, "verdicts": ["yes", "yes"], "repeat": 7},
    ]
    found, counts = table(tmp_path / "s", cases, claim_tables.packed_of(rows), run)
    own = [r["value"] for r in found.to_pylist() if r["measure"] == "claims.precision"]
    assert own == [1.0, 0.5, 0.0]
    assert counts["verdicts of other runs"] == counts["verdicts of no scored case"] == 2
    assert counts["verdicts of other languages or repeats"] == 2
    assert counts["verdicts matched"] == 6


def test_packed__names_chunks_in_any_order_and_some_not_shown(tmp_path):
    cases = {"a": Case(2, 0, ["x", "y"])}
    rows = [{"case_id": "a", "relation": "chunk_entails", "evidence": ["z", "y", "x"],
             "verdicts": ["yes", "no", "yes", "yes", "no", "no"]}]  # fmt: skip
    scores = score(
        claim_tables.run_of(cases), suite=claim_tables.suite_of(tmp_path / "s", cases),
        judgments=claim_tables.packed_of(rows), measures=["faithfulness"],
    )  # fmt: skip
    assert scores.value("faithfulness", "a") == 0.5
    assert scores.audits[0].counts["verdicts on chunks that were not shown"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdicts": ["yes"]}, r"row 2: 1 verdicts on case 'a', relation correct.* 2, one for"),
        ({"relation": "chunk_entails", "verdicts": ["yes"] * 3},
         r"row 2: 3 verdicts .* 4, one for each of 2 claims x 2 chunks"),
        ({"relation": "chunk_entails", "verdicts": ["yes"] * 4, "evidence": ["x"]},
         r"row 2: 4 verdicts .* 2, one for each of 2 claims x 1 chunks"),
        ({"relation": "covered", "verdicts": []}, r"row 2: 0 verdicts .* 1, one for each claim"),
    ],
)  # fmt: skip
def test_length__that_does_not_fit_is_refused(tmp_path, change, words):
    cases = {"a": Case(2, 1, ["x", "y"])}
    row = {"case_id": "a", "relation": "correct", "verdicts": ["yes", "no"]}
    with pytest.raises(InputError, match=words):
        table(tmp_path / "s", cases, claim_tables.packed_of([row, {**row, **change}]))


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        ([{"verdicts": ["yes"]}, {"verdicts": ["no", "true"]}], "string", "row 2: verdict 'true'"),
        ([{"verdicts": []}, {"verdicts": [0, 6]}], "int8", "row 2: verdict 6"),
        ([{"verdicts": [-1]}], "int8", "row 1: verdict -1"),
        ([{"verdicts": [], "relation": "cites"}], "string", "row 1: packed verdicts of relation"),
        ([{"verdicts": [], "relation": "supports"}], "string", "relation 'supports'"),
        ([{"verdicts": None}], "string", "null verdicts"),
    ],
)
def test_words__that_are_no_verdicts_are_refused(rows, kind, words):
    base = {"case_id": "a", "relation": "correct"}
    with pytest.raises(InputError, match=words):
        read_judgments(claim_tables.packed_of([{**base, **row} for row in rows], KINDS[kind]))


def test_columns__that_packed_rows_must_not_have_or_lack():
    good = claim_tables.packed_of([{"case_id": "a", "relation": "correct", "verdicts": ["yes"]}])
    with pytest.raises(InputError, match="a claim beside a list"):
        read_judgments(good.append_column("claim", pa.array([0], pa.int16())))
    with pytest.raises(InputError, match="no column judge"):
        read_judgments(good.drop_columns(["judge"]))
    flat = good.set_column(good.column_names.index("verdicts"), "verdicts", pa.array(["yes"]))
    with pytest.raises(InputError, match="lists of verdicts"):
        read_judgments(flat)
    empty = claim_tables.packed_of([{"case_id": "a", "relation": "relevance", "verdicts": ["yes"]}])
    with pytest.raises(InputError, match="row 1: packed verdicts of relevance without chunks"):
        read_judgments(empty)


def test_files__of_both_kinds_keep_their_names(tmp_path):
    long = claim_tables.judgments_of([{"case_id": "a", "relation": "correct", "claim": 0,
                                       "verdict": "yes"}])  # fmt: skip
    rows = [{"case_id": "a", "relation": "correct", "verdicts": ["yes"]}]
    given = read_judgments([long, claim_tables.packed_of(rows), claim_tables.packed_of(rows)])
    assert len(given) == 1
    assert given.packed is not None
    assert len(given.packed) == 2
    assert [name for _, name in given.where] == ["judgments 1", "judgments 2", "judgments 3"]
    assert given.place(0) == ("judgments 1", 1)
    assert given.packed.place(1) == ("judgments 3", 1)
    assert given.packed.values.tolist() == [0, 0]
    assert given.packed.offsets.tolist() == [0, 1, 2]


def test_packed__is_seen_by_measures_of_citations(tmp_path):
    cases = {"a": Case(2, 0, ["x"], correct="11")}
    run = claim_tables.run_of(cases).append_column(
        "citations", pa.array([[{"claim": 0, "id": "x"}, {"claim": 1, "id": "x"}]])
    )
    cites = claim_tables.judgments_of([
        {"case_id": "a", "relation": "cites", "claim": j, "evidence": ["x"], "verdict": word}
        for j, word in enumerate(("yes", "no"))
    ])  # fmt: skip
    given = {
        "plain": claim_tables.judgments_of(claim_tables.all_rows(cases)),
        "packed": claim_tables.packed_of(
            [{"case_id": "a", "relation": "correct", "verdicts": ["yes", "yes"]}]
        ),
    }
    for name, judgments in given.items():
        scores = score(
            run, suite=claim_tables.suite_of(tmp_path / name, cases),
            judgments=[cites, judgments], measures=["citation.laundering"],
        )  # fmt: skip
        assert scores.value("citation.laundering", "a") == 1, name


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__are_compiled_once_for_every_form_of_judgments(tmp_path):
    full = {"correct": "1", "covered": "1", "entailed": "1", "by_answer": "1", "by_reference": "1"}
    cases = {f"q{i}": Case(1, 1, ["x"], **full) for i in range(3)}
    rows = claim_tables.all_rows(cases)
    long = claim_tables.judgments_of(rows)
    words = long.set_column(
        long.column_names.index("case_id"), "case_id", long["case_id"].dictionary_encode()
    )
    forms = [long, words, long.append_column("run", pa.array(["r"] * len(long)))]
    forms += [packed(cases, kind) for kind in KINDS]
    for i, form in enumerate(forms):
        table(tmp_path / str(i), cases, form)
    assert len(kernel_verdicts.settle.signatures) == 1
    assert len(verdict_lists.unfold.signatures) == 1
