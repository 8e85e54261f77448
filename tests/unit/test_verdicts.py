"""Verdicts: read and checked, brought to rankings, resolved; against plain Python."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from ragcore import schema
from ragcore.errors import InputError
from ragcore.judgments import read_judgments
from ragcore.units import Vocabulary
from ragcore.verdicts import Matching, Verdicts
from ragcore_kernels import verdicts as kernel

ROW = {
    "run": None, "case_id": "a", "lang": None, "repeat": None, "relation": "entailed", "claim": 0,
    "evidence": None, "verdict": "yes", "judge": "j", "rung": "model", "adjudicated": False,
}  # fmt: skip


def table(*rows):
    names = list(ROW)
    columns = {n: [{**ROW, **row}[n] for row in rows] for n in names}
    return pa.table({n: pa.array(columns[n], schema.JUDGMENTS.field(n).type) for n in names})


def verdicts(*rows, cases=("a", "b"), langs=None, repeats=None, of=None, needed=None, judge=""):
    """Verdicts on rankings of `of` (indices of cases), all of a run called `r`."""
    of = np.arange(len(cases)) if of is None else np.array(of)
    match = Matching(
        "r", pa.array(cases, pa.large_string()), np.arange(len(cases)), of, langs, repeats,
        np.zeros(of.size, np.int8) if needed is None else np.array(needed, np.int8),
    )  # fmt: skip
    return Verdicts(read_judgments(table(*rows)), match, Vocabulary(None), judge)


def claims(found, relation="entailed", counts=(2, 2)):
    return found.claims(relation, np.concatenate([[0], np.cumsum(counts)])).verdict.tolist()


YES, NO, GONE, OPEN, BROKEN, LOW = (
    kernel.YES, kernel.NO, kernel.MISSING, kernel.DISPUTED, kernel.FAILED, kernel.LOW_RUNG,
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{}], YES),
        ([{"verdict": "no"}, {"verdict": "no", "judge": "k"}], NO),
        ([{}, {"verdict": "no", "judge": "k"}], OPEN),
        ([{}, {"verdict": "no", "judge": "k", "rung": "human"}], NO),
        ([{"rung": "authority"}, {"verdict": "no", "rung": "rule", "adjudicated": True}], NO),
        ([{"adjudicated": True}, {"verdict": "no", "adjudicated": True}], OPEN),
        ([{"verdict": "no"}, {"judge": "declared"}], YES),
        ([{"verdict": "error"}], BROKEN),
        ([{"verdict": "error", "rung": "authority"}, {"verdict": "no"}], NO),
        ([{"verdict": "unclear"}], OPEN),
        ([{}, {"verdict": "unclear"}], OPEN),
        ([{"verdict": "unclear"}, {"rung": "human"}], YES),
        ([{"run": "other"}], GONE),
        ([{"run": "r"}], YES),
        ([{"case_id": "b"}], GONE),
        ([{"relation": "correct"}], GONE),
    ],
)
def test_resolution__takes_the_highest_and_disputes_equals(rows, expected):
    for order in itertools.permutations(rows):
        assert claims(verdicts(*order, judge="declared"))[0] == expected


def test_resolution__is_that_of_plain_python_in_any_order():
    draw = random.Random(3)
    for _ in range(200):
        rows = [
            {"verdict": draw.choice(schema.VERDICTS), "rung": draw.choice(schema.RUNGS[:3]),
             "judge": draw.choice("jk"), "adjudicated": draw.random() < 0.2,
             "claim": draw.choice((0, 1)), "case_id": draw.choice("ab")}
            for _ in range(draw.randrange(1, 9))
        ]  # fmt: skip
        expected = [_plain([r for r in rows if (r["case_id"], r["claim"]) == item])
                    for item in (("a", 0), ("a", 1), ("b", 0), ("b", 1))]  # fmt: skip
        assert claims(verdicts(*rows, judge="k")) == expected


def _plain(rows):
    said = [r for r in rows if r["verdict"] != "error"]
    if not said:
        return BROKEN if rows else GONE
    key = lambda r: (r["adjudicated"], schema.RUNGS.index(r["rung"]), r["judge"] == "k")  # noqa: E731
    best = max(map(key, said))
    words = {r["verdict"] for r in said if key(r) == best}
    if len(words) > 1 or words == {"unclear"}:
        return OPEN
    return schema.VERDICTS.index(words.pop())


def test_rung__below_the_required_one_is_no_verdict():
    found = verdicts({}, {"case_id": "b", "rung": "human"}, needed=[3, 3])
    assert claims(found) == [LOW, GONE, YES, GONE]
    cells = found.claims("entailed", np.array([0, 2, 4]))
    assert cells.rung.tolist() == [2, -1, 3, -1]
    assert cells.states().tolist() == [schema.DISPUTED, schema.MISSING]
    assert found.audit()["items judged below the required rung"] == 1


def test_variants__null_speaks_of_all():
    given = {"of": [0, 0, 0, 1], "langs": ["en", "zh", "en", "en"], "repeats": [0, 0, 1, 0]}
    offsets = np.arange(5)
    for row, expected in (
        ({}, [YES, YES, YES, GONE]),
        ({"lang": "zh"}, [GONE, YES, GONE, GONE]),
        ({"repeat": 1}, [GONE, GONE, YES, GONE]),
        ({"lang": "en", "repeat": 0}, [YES, GONE, GONE, GONE]),
        ({"lang": "fr"}, [GONE] * 4),
    ):
        found = verdicts(row, **given)
        assert found.claims("entailed", offsets).verdict.tolist() == expected, row
    assert found.audit() == {"verdicts of other languages or repeats": 1}


def test_pairs__a_cell_a_claim_and_chunk():
    rows = [
        {"relation": "chunk_entails", "claim": 1, "evidence": ["y"]},
        {"relation": "chunk_entails", "claim": 0, "evidence": ["x"], "verdict": "no"},
        {"relation": "chunk_entails", "claim": 0, "evidence": ["z"]},
        {"relation": "chunk_entails", "claim": 0, "evidence": ["x", "y"]},
        {"relation": "chunk_entails", "case_id": "nobody", "evidence": ["x"]},
    ]
    found = verdicts(*rows)
    codes = Vocabulary(None)
    found = Verdicts(found.judgments, found.match, codes)
    units = codes.codes(pa.array(["x", "y"]))
    cells = found.pairs("chunk_entails", np.array([0, 2, 4]), np.array([0, 2, 2]), units)
    assert cells.verdict.tolist() == [NO, GONE, GONE, YES]
    assert found.audit() == {
        "verdicts of no scored case": 1, "verdicts on chunks that were not shown": 1,
        "verdicts on several chunks": 1, "verdicts matched": 2,
    }  # fmt: skip


def test_claim__out_of_range_is_refused():
    with pytest.raises(InputError, match=r"judgments 1 row 2: claim 2 of case 'a'.*0 to 1"):
        claims(verdicts({}, {"claim": 2}))


@pytest.mark.parametrize("name", ["claim", "repeat"])
def test_number__below_zero_is_refused(name):
    with pytest.raises(InputError, match=rf"judgments 1 row 2: {name} -1; expected a {name} from"):
        verdicts({}, {name: -1})


def test_claim__null_speaks_of_the_whole_answer():
    found = verdicts({"claim": None, "verdict": "no"}, {"claim": 1})
    assert claims(found) == [GONE, YES, GONE, GONE]
    assert found.audit() == {"verdicts on whole answers": 1, "verdicts matched": 1}
    assert found.whole("entailed").verdict.tolist() == [OPEN, GONE]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"relation": "supports"}, "relation 'supports'"),
        ({"verdict": "true"}, "verdict 'true'"),
        ({"rung": "llm"}, "rung 'llm'"),
    ],
)
def test_words__that_the_schema_has_not_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        read_judgments(table({}, change))


def test_columns__needed_and_null():
    with pytest.raises(InputError, match="no column rung"):
        read_judgments(table({}).drop_columns(["rung"]))
    with pytest.raises(InputError, match="null verdict"):
        read_judgments(table({}, {"verdict": None}))


def test_files__are_one_after_another(tmp_path):
    for name, rows in (("one", [{}, {"claim": 1}]), ("two", [{"claim": 9}])):
        with pa.OSFile(str(tmp_path / name), "wb") as sink:
            data = table(*rows)
            with pa.ipc.new_file(sink, data.schema) as out:
                out.write_table(data)
    given = read_judgments([tmp_path / "one", tmp_path / "two"])
    assert len(given) == 3
    assert given.place(2) == (str(tmp_path / "two"), 1)
