"""Why a case got its scores: arithmetic, states, repeats told once, and what goes wrong."""

from __future__ import annotations

import pyarrow as pa
import pytest
from click.testing import CliRunner

import diagnosed as traces
import tables
from ragcore import schema, score
from ragcore.cli import main
from ragcore.diagnosis.first import MEASURES
from ragcore.errors import InputError, UsageError
from ragcore.explain_case import explain_case


def scored(folder, rows, measures=(*MEASURES, "nDCG@10"), cases=None, **others):
    found = score(traces.run(*rows), suite=traces.suite(folder, cases), measures=list(measures),
                  names=["mine"], **others)  # fmt: skip
    return tables.write_ipc(found.table(), folder / "scores.arrow")


def lines_of(page):
    return [" ".join(line.split()) for line in page.splitlines()]


def both(**changed):
    rows = []
    for lang in ("en", "zh"):
        rows += [traces.trace(lang=lang, repeat=i, trace=f"{lang}{i}", **changed) for i in range(3)]
    return rows


CASES = [traces.case(), traces.case(lang="zh")]


def test_page__says_alike_variants_once_with_numerators_and_denominators(tmp_path):
    page = lines_of(explain_case(scored(tmp_path, both(), cases=CASES), "c"))
    assert "run mine: first failing layer: passed" in page
    assert "retrieval retrieval.coverage 1.0000 1/1 ok en x3; zh x3" in page
    assert "outcome generation.task 1.0000 1/1 ok en x3; zh x3" in page
    layers = [line.split()[0] for line in page if line]
    assert layers.index("retrieval") < layers.index("context") < layers.index("outcome")
    assert any(line.startswith("retrieval.coverage: required evidence retrieved") for line in page)


def test_page__tells_apart_what_differs(tmp_path):
    rows = both()
    rows[4] |= {"context": [], "context_state": "no_evidence"}
    rows[4] |= {"proposed": {"state": "abstain"}, "final": {"state": "abstain"}}
    page = lines_of(explain_case(scored(tmp_path, rows, cases=CASES), "c"))
    assert (
        "run mine: first failing layer: passed (en repeat 0, 1, 2; zh repeat 0, 2); "
        "context (zh repeat 1)"
    ) in page
    assert "context context.coverage 1.0000 1/1 ok en repeat 0, 1, 2; zh repeat 0, 2" in page
    assert "0.0000 0/1 ok zh repeat 1" in page


def test_page__states_have_their_reasons_and_no_numbers(tmp_path):
    cases = [traces.case(evidence=[], expected_state="abstain")]
    rows = [traces.trace(context=None, final=None, proposed=None, error="timeout")]
    page = lines_of(explain_case(scored(tmp_path, rows, cases=cases), "c"))
    assert "run mine: first failing layer: unknown" in page
    assert "outcome generation.task - failed error en" in page
    assert "ranked nDCG@10 - na no-relevant en" in page


def test_page__the_rung_of_verdicts_is_shown_where_there_is_one(tmp_path):
    table = pa.ipc.open_file(str(scored(tmp_path, [traces.trace()]))).read_all()
    rows = table.to_pylist()
    for row in rows:
        row["rung"] = "human" if row["measure"] == "end_to_end" else None
    made = pa.Table.from_pylist(rows, schema=schema.SCORES)
    page = lines_of(explain_case(tables.write_ipc(made, tmp_path / "r.arrow"), "c"))
    assert [line for line in page if "human" in line] == ["end_to_end 1.0000 1/1 ok human en"]


def test_page__without_the_four_measures_no_layer_is_named(tmp_path):
    page = explain_case(scored(tmp_path, [traces.trace()], ["R@5", "end_to_end"]), "c")
    assert "not told, as retrieval.coverage, context.coverage, generation.task is not" in page


def test_page__unknown_measures_are_shown_all_the_same(tmp_path):
    rows = [{
        "run": "r", "case_id": "c", "measure": "house.rule", "value": 0.5, "numerator": 1.0,
        "denominator": 2.0, "state": "ok",
    }]  # fmt: skip
    path = tables.write_ipc(pa.Table.from_pylist(rows, schema=schema.SCORES), tmp_path / "s.arrow")
    assert "other house.rule 0.5000 1/2 ok" in lines_of(explain_case(path, "c"))


def test_errors__unknown_case_names_what_looks_alike(tmp_path):
    path = scored(tmp_path, [traces.trace(case_id="stale-premise")],
                  cases=[traces.case(case_id="stale-premise")])  # fmt: skip
    with pytest.raises(UsageError, match="it has 'stale-premise'"):
        explain_case(path, "stale-promise")
    with pytest.raises(UsageError, match="cases are like 'stale-premise'"):
        explain_case(path, "zzz")


def test_errors__what_is_no_table_of_scores(tmp_path):
    wrong = tables.write_ipc(pa.table({"case_id": ["c"]}), tmp_path / "w.arrow")
    with pytest.raises(InputError, match="a table of scores, with run, lang"):
        explain_case(wrong, "c")
    columns = {name: [["x"]] if name == "value" else ["x"] for name in schema.SCORES.names}
    odd = tables.write_ipc(pa.table(columns), tmp_path / "o.arrow")
    with pytest.raises(InputError, match="as the engine writes it"):
        explain_case(odd, "c")
    (tmp_path / "t.txt").write_text("not a table")
    with pytest.raises(InputError, match="a table of scores"):
        explain_case(tmp_path / "t.txt", "c")
    with pytest.raises(InputError, match="No such file"):
        explain_case(tmp_path / "absent", "c")


def call(*words, status=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == status, result.output
    return result


def test_command__explains_a_case_or_a_measure(tmp_path):
    path = scored(tmp_path, [traces.trace()])
    assert "first failing layer: passed" in call("explain", path, "c").stdout
    assert "nDCG@10" in call("explain", "nDCG@10").stdout
    assert "no case 'x'" in call("explain", path, "x", status=2).stderr
    assert call("explain", "absent", "c", status=2).stdout == ""
