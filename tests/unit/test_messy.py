"""One decision for each kind of mess, whatever the reader: text, Arrow, Parquet, mappings."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tables
from ragcore import score
from ragcore.errors import InputError
from ragcore.formats.trec import read_qrels, read_run, to_arrow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "messy-inputs.md"
DECISIONS = dict(
    re.findall(r"^\| `((?:real|made)/[^`]+)` \| (\w+) \|", PAGE.read_text("utf-8"), re.M)
)
MEASURES = ["nDCG@10", "AP", "RR", "Judged@10", "infAP", "NumRet", "NumRel"]
FORMS = ("arrow", "stream", "parquet", "dictionary", "view", "shuffled")


def is_run(name):
    return ".run" in name


def text(shared_data, name):
    path = shared_data / "messy" / name
    return to_arrow((read_run if is_run(name) else read_qrels)(path))


def written(table, form, folder):
    """The table as one of `FORMS`: a path, or in memory."""
    path = folder / f"table.{form}"
    if form in ("arrow", "stream"):
        return tables.write_ipc(table, path, form == "stream")
    if form == "parquet":
        pq.write_table(table, path)
        return path
    ids = ("query_id", "doc_id")
    if form == "shuffled":
        return table.take(pa.array(sorted(range(len(table)), key=lambda i: i * 7 % 11)))
    for name in ids:
        column = table[name]
        wide = pa.string_view() if pa.types.is_string(column.type) else pa.binary_view()
        column = column.dictionary_encode() if form == "dictionary" else column.cast(wide)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def partner(shared_data, name, table):
    """What a file is scored against: judgements for a run, a run for judgements."""
    folder = shared_data / "messy" / "made"
    if name == "made/unicode_ids.run":
        return folder / "unicode_ids.qrels"
    if is_run(name):
        if name.startswith("made/") and "latin1" not in name:
            return folder / "clean.qrels"
        rows = table.select(["query_id", "doc_id"]).to_pylist()[::3]
        out = {}
        for i, row in enumerate(rows):
            case, doc = (v if isinstance(v, str) else v.decode("latin-1") for v in row.values())
            out.setdefault(case, {})[doc] = i % 3
        return out
    if name == "made/unicode_ids.qrels":
        return folder / "unicode_ids.run"
    if name.startswith("made/"):
        return folder / "clean.run"
    rows = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    out = {}
    for i, (case, doc) in enumerate(rows):
        out.setdefault(case, {})[doc] = float(i * 7 % 5)
    return out


def judge(name, source, other, **options):
    """Score, `source` being what the file `name` holds."""
    run, qrels = (source, other) if is_run(name) else (other, source)
    return score(run, qrels=qrels, measures=MEASURES, **options)


def outcome(*arguments, **options):
    """Every value to the last bit; or what was wrong, without the place."""
    try:
        scores = judge(*arguments, **options)
    except InputError as error:
        found = re.sub(r"\(also \w+ \d+\)", "", error.found)
        return "refused", re.sub(r"(/\S*|\brun 1\b|\bqrels\b):?", "", found).strip()
    rows = scores.table().select(["measure", "case_id", "value", "state"]).to_pylist()
    return "scored", sorted((r["measure"], r["case_id"], str(r["value"]), r["state"]) for r in rows)


READABLE = sorted(name for name, decision in DECISIONS.items() if decision != "refuse")


def test_decisions__of_every_file_are_on_the_page(shared_data):
    folder = shared_data / "messy"
    assert {f"{p.parent.name}/{p.name}" for p in folder.glob("*/*")} == DECISIONS.keys()
    assert set(DECISIONS.values()) == {"read", "warn", "later", "refuse"}


@pytest.mark.parametrize("name", READABLE)
def test_messy__has_one_outcome_in_every_form(shared_data, tmp_path, name):
    path, table = shared_data / "messy" / name, text(shared_data, name)
    other = partner(shared_data, name, table)
    if "latin1" in name:
        other = pa.table({
            "query_id": table["query_id"].combine_chunks()[::3],
            "doc_id": table["doc_id"].combine_chunks()[::3],
            "relevance": pa.array([i % 3 for i in range(len(table["doc_id"][::3]))], pa.int32()),
        })  # fmt: skip
    expected = outcome(name, path, other)
    scored = DECISIONS[name] in ("read", "warn") or name == "made/dup_same.qrels"
    assert expected[0] == ("scored" if scored else "refused"), expected
    for form in FORMS:
        if form == "shuffled" and expected[0] == "refused":
            continue
        assert outcome(name, written(table, form, tmp_path), other) == expected, form


@pytest.mark.parametrize("name", sorted(n for n, d in DECISIONS.items() if d == "refuse"))
def test_messy__refused_text_is_refused_by_scoring(shared_data, name):
    other = shared_data / "messy" / "made" / ("clean.qrels" if is_run(name) else "clean.run")
    with pytest.raises(InputError, match=re.escape(name)) as caught:
        judge(name, shared_data / "messy" / name, other)
    assert caught.value.line is not None


@pytest.mark.parametrize("name", ["made/dup_doc.run", "made/conflict.qrels"])
def test_messy__what_scoring_refuses_is_named_by_line(shared_data, name):
    other = shared_data / "messy" / "made" / ("clean.qrels" if is_run(name) else "clean.run")
    with pytest.raises(InputError) as caught:
        judge(name, shared_data / "messy" / name, other)
    lines = (shared_data / "messy" / name).read_text().splitlines()
    doc = re.search(r"document '([^']+)'", caught.value.found)[1]
    first = int(re.search(r"\(also line (\d+)\)", caught.value.found)[1])
    assert doc in lines[caught.value.line - 1]
    assert doc in lines[first - 1]
    assert first < caught.value.line


@pytest.mark.parametrize("policy", ["first", "last", "max"])
def test_messy__duplicates_are_mended_alike(shared_data, tmp_path, policy):
    name = "made/dup_doc.run"
    table, other = text(shared_data, name), shared_data / "messy/made/clean.qrels"
    expected = outcome(name, shared_data / "messy" / name, other, duplicates=policy)
    assert expected[0] == "scored"
    for form in ("arrow", "stream", "parquet", "dictionary", "view"):
        found = outcome(name, written(table, form, tmp_path), other, duplicates=policy)
        assert found == expected, form


def numbers(shared_data, name, column, change):
    """The clean table with other numbers."""
    table = text(shared_data, name)
    values = [change(i, v) for i, v in enumerate(table[column].to_pylist())]
    return table.set_column(2, column, pa.chunked_array([pa.array(values, pa.float64())]))


@pytest.mark.parametrize("form", ["arrow", "stream", "parquet", "dictionary", "view"])
def test_messy__nan_in_tables_is_refused_as_in_text(shared_data, tmp_path, form):
    nan = float("nan")
    table = numbers(shared_data, "made/clean.run", "score", lambda i, v: nan if i in (3, 9) else v)
    with pytest.raises(InputError, match="is NaN") as caught:
        judge("x.run", written(table, form, tmp_path), shared_data / "messy/made/clean.qrels")
    assert caught.value.row == 4


@pytest.mark.parametrize("form", ["arrow", "parquet", "dictionary"])
def test_messy__float_grades_in_tables_are_refused_as_in_text(shared_data, tmp_path, form):
    made = shared_data / "messy" / "made"
    whole = numbers(shared_data, "made/clean.qrels", "relevance", lambda i, v: float(v))
    with pytest.raises(InputError, match=r"grade 1\.0 is not an integer") as caught:
        judge("x.qrels", written(whole, form, tmp_path), made / "clean.run")
    assert caught.value.row == 1
    clean = outcome("x.qrels", made / "clean.qrels", made / "clean.run")
    taken = outcome(
        "x.qrels", written(whole, form, tmp_path), made / "clean.run", float_grades=True
    )
    assert taken == clean
    assert (
        outcome("x.qrels", made / "float_rel.qrels", made / "clean.run", float_grades=True) == clean
    )
    half = numbers(shared_data, "made/clean.qrels", "relevance", lambda i, v: v / 2)
    with pytest.raises(InputError, match=r"grade 0\.5 is not an integer"):
        judge("x.qrels", written(half, form, tmp_path), made / "clean.run", float_grades=True)


def test_messy__mended_runs_score_as_the_clean_one(shared_data):
    made = shared_data / "messy" / "made"
    clean = outcome("x.run", made / "clean.run", made / "clean.qrels")
    mended = "bom crlf no_final_newline blank_lines tabs_spaces seven_columns float_rank"
    for name in (*mended.split(), "huge_rank", "text_rank", "same_rank", "mixed_tags", "exponent"):
        assert outcome("x.run", made / f"{name}.run", made / "clean.qrels") == clean, name
    assert outcome("x.run", made / "ok.run.gz", made / "clean.qrels") == clean
    assert outcome("x.qrels", made / "header.qrels", made / "clean.run") == clean
    assert outcome("x.qrels", made / "dup_same.qrels", made / "clean.run") == clean


def test_messy__notes_reach_the_report(shared_data):
    made = shared_data / "messy" / "made"
    said = {
        "bom": "byte order mark: 1", "blank_lines": "blank lines: 24",
        "mixed_tags": "other run tags: 10",
        "seven_columns": "lines with extra fields: 20", "rising_scores": "rank conflicts: 19",
        "float_rank": "unreadable ranks: 20",
    }  # fmt: skip
    for name, sentence in said.items():
        (audit,) = judge("x.run", made / f"{name}.run", made / "clean.qrels").audits
        assert sentence in audit.warnings, name
    (audit,) = judge("x.qrels", made / "header.qrels", made / "clean.run").audits
    assert any("header line" in sentence for sentence in audit.warnings)
    (audit,) = judge("x.qrels", made / "all_zero.qrels", made / "clean.run").audits
    assert audit.no_relevant == ["1", "2"]
    (audit,) = judge("x.qrels", made / "dup_same.qrels", made / "clean.run").audits
    assert audit.counts["repeated judgements"] == 1
