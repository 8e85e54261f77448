"""Rows whose cases alternate, and ids that a dictionary codes: the same scores by another way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ragcore import dictionaries, score
from ragcore.errors import InputError
from ragcore.loading import load_judgements, load_runs

MEASURES = ["AP", "nDCG@10", "RR", "Bpref", "NumRet"]


def workload(cases: int, depth: int, seed: int = 5) -> tuple[pa.Table, dict[str, dict[str, int]]]:
    rng = np.random.default_rng(seed)
    topics = np.repeat([f"q{i}" for i in range(cases)], depth)
    docs = np.char.add("doc-", (np.arange(cases * depth) % (2 * depth)).astype(str))
    scores = np.round(rng.normal(size=cases * depth), 1)  # many ties
    qrels = {
        f"q{i}": {f"doc-{j}": int(g) for j, g in zip(rng.choice(2 * depth, 9, False),
                                                     rng.integers(-1, 3, 9), strict=True)}
        for i in range(cases)
    }  # fmt: skip
    return pa.table({"qid": topics, "docno": docs, "score": scores}), qrels


def test_scattered__rows_score_as_grouped_ones():
    table, qrels = workload(60, 50)
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    (one,) = load_runs(mixed, 1)
    assert len(one.rows.segments) == 60
    whole, loose = (score(t, qrels=qrels, measures=MEASURES, names=["r"]) for t in (table, mixed))
    assert loose.table().equals(whole.table())


def test_scattered__rows_are_still_named_where_they_stand():
    table, qrels = workload(60, 50)
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    again = pa.concat_tables([mixed, mixed.slice(17, 1)])
    with pytest.raises(InputError, match=r"also row 18") as caught:
        score(again, qrels=qrels, measures=["AP"])
    assert caught.value.row == len(mixed) + 1
    bad = mixed.set_column(2, "score", pa.array(np.where(np.arange(len(mixed)) == 99, np.nan, 1.0)))
    with pytest.raises(InputError, match="NaN") as caught:
        score(bad, qrels=qrels, measures=["AP"])
    assert caught.value.row == 100


def test_scattered__text_names_its_line(tmp_path):
    table, qrels = workload(60, 50)
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    lines = [f"{r['qid']} Q0 {r['docno']} 1 {r['score']} t" for r in mixed.to_pylist()]
    path = tmp_path / "run.trec"
    path.write_text("\n".join([*lines, lines[4]]) + "\n")
    with pytest.raises(InputError, match="also line 5") as caught:
        score(path, qrels=qrels, measures=["AP"])
    assert caught.value.line == len(lines) + 1


@pytest.fixture
def coded(monkeypatch):
    monkeypatch.setattr(dictionaries, "WORTH_ROWS", 1)
    table, qrels = workload(40, 60)
    return table, table.set_column(1, "docno", table["docno"].dictionary_encode()), qrels


@pytest.mark.parametrize("threads", [1, 2])
def test_dictionary__words_score_as_strings(coded, threads):
    plain, dictionary, qrels = coded
    (run,), judged = load_runs(dictionary, 1), load_judgements(qrels, 1)
    assert dictionaries.as_words(run.rows.ids, judged.ids, threads) is not None
    given = [
        score(t, qrels=qrels, measures=MEASURES, names=["r"], threads=threads)
        for t in (plain, dictionary)
    ]
    assert given[0].table().equals(given[1].table())


def test_dictionary__with_repeated_values_is_compared_as_strings(coded):
    plain, _, qrels = coded
    names = plain["docno"].unique().to_pylist()
    values = pa.array(names + names)
    codes = {name: i for i, name in enumerate(names)}
    odd = [codes[n] + len(names) * (i % 2) for i, n in enumerate(plain["docno"].to_pylist())]
    column = pa.DictionaryArray.from_arrays(pa.array(odd, pa.int32()), values)
    table = plain.set_column(1, "docno", column)
    (run,), judged = load_runs(table, 1), load_judgements(qrels, 1)
    assert dictionaries.as_words(run.rows.ids, judged.ids, 1) is None
    whole, same = (score(t, qrels=qrels, measures=MEASURES, names=["r"]) for t in (plain, table))
    assert whole.table().equals(same.table())
    other = pa.DictionaryArray.from_arrays(pa.array([odd[0] + len(names)], pa.int32()), values)
    twice = pa.concat_tables([table, table.slice(0, 1).set_column(1, "docno", other)])
    with pytest.raises(InputError, match="duplicate document"):
        score(twice, qrels=qrels, measures=["AP"])


def test_dictionary__judged_documents_that_it_lacks_are_not_found(coded):
    _, dictionary, qrels = coded
    more = {case: {**grades, "elsewhere": 2, "doc-": 1} for case, grades in qrels.items()}
    scores = score(dictionary, qrels=more, measures=["NumRel", "NumRelRet"])
    fewer = score(dictionary, qrels=qrels, measures=["NumRel", "NumRelRet"])
    assert scores.mean("NumRel") == fewer.mean("NumRel") + 2 * len(qrels)
    assert scores.mean("NumRelRet") == fewer.mean("NumRelRet")
