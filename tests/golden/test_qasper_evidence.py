"""One set of QASPER labels under three chunkings, against plain Python and the data's own qrels."""

from __future__ import annotations

import pytest

import qasper
import reference_evidence as reference
from ragcore import score
from ragcore.suites import open_suite

NAMES = {
    "P@5": ("P", 5), "R@5": ("R", 5), "AP": ("AP", None), "RR": ("RR", None),
    "nDCG@10": ("nDCG", 10), "Success@5": ("Success", 5), "retrieval.coverage": ("R", None),
}  # fmt: skip
CHUNKINGS = (qasper.paragraphs, qasper.pairs, qasper.windows)


@pytest.fixture(scope="module")
def data(shared_data):
    folder = shared_data / "qasper"
    units = qasper.papers(folder)
    return folder, units, qasper.labels(folder, units), qasper.read(folder, "queries")


@pytest.fixture(scope="module", params=CHUNKINGS, ids=lambda how: how.__name__)
def chunking(request, data, tmp_path_factory):
    """A suite under one chunking, its chunks and a run over them."""
    _, units, evidence, questions = data
    folder = tmp_path_factory.mktemp(request.param.__name__)
    qasper.write_cases(folder, evidence)
    chunks = qasper.cut(units, request.param)
    qasper.write_chunks(folder, chunks)
    run = qasper.bm25(questions, chunks)
    scores = score(qasper.nested(run), suite=folder, measures=list(NAMES))
    return request.param, folder, chunks, run, scores


def distinct(items):
    """Each place once: several annotators marked the same words."""
    fields = ("doc_id", "block", "start", "end", "quote")
    return list({tuple(item.get(f) for f in fields): item for item in items}.values())


def test_chunking__gives_the_numbers_of_plain_python(chunking, data):
    _, _, chunks, run, scores = chunking
    by_paper = {}
    for chunk in chunks:
        by_paper.setdefault(chunk["doc_id"], []).append(chunk)
    for case, items in data[2].items():
        found = [reference.where(i, by_paper[i["doc_id"]]) for i in distinct(items)]
        kept = [(1, covering) for why, covering in found if not why]
        topic = reference.Topic(run[case], kept)
        for text, (name, k) in NAMES.items():
            wanted = reference.measure(name, topic, k)
            got = scores.value(text, case)
            if wanted is None:
                assert got is None, (case, text)
                assert scores.state(text, case) == ("disputed" if items else "na")
            else:
                assert got == pytest.approx(float(wanted), abs=1e-14), (case, text)


def test_chunking__leaves_the_labels_alone_and_stale_ones_are_the_same(chunking, data):
    """The data says of 44 quotes that no text unit has them: tables, headings, broken lines.

    One of them runs over a line break between two units, so the paper does hold it.
    """
    _, folder, _, _, scores = chunking
    unlocated = [i for items in data[2].values() for i in items if i["unit"] is None]
    assert len(unlocated) == 44
    assert scores.audits[0].counts["evidence items stale"] == 43
    names = open_suite(folder).cases["evidence"].type.value_type.names
    assert names[0] == "doc_id"
    assert open_suite(folder).cases["evidence"].to_pylist() == [
        [{n: item.get(n) for n in names} for item in items] for items in data[2].values()
    ]


def test_chunkings__differ_as_they_should(data, tmp_path):
    """Two paragraphs in one chunk are found sooner; what is found is the same evidence."""
    _, units, evidence, questions = data
    means = {}
    for how in CHUNKINGS:
        qasper.write_cases(tmp_path / how.__name__, evidence)
        chunks = qasper.cut(units, how)
        qasper.write_chunks(tmp_path / how.__name__, chunks)
        every = {q["query_id"]: [c["chunk_id"] for c in chunks if c["doc_id"] == q["paper_id"]]
                 for q in questions}  # fmt: skip
        run = qasper.nested(every)
        scores = score(run, suite=tmp_path / how.__name__, measures=["R", "NumRel", "NumRelRet"])
        means[how.__name__] = scores.means()
    assert len({m["NumRel"] for m in means.values()}) == 1
    assert means["pairs"]["R"] == 1.0
    for name in ("paragraphs", "windows"):  # the one quote that two paragraphs share is in none
        assert means[name]["NumRel"] - means[name]["NumRelRet"] == 1


def test_paragraphs__agree_with_the_qrels_of_the_data(data, tmp_path):
    """What is counted by chunk is the same by item and by the qrels derived from the same rows."""
    folder, units, evidence, _ = data
    qasper.write_cases(tmp_path, evidence)
    qasper.write_chunks(tmp_path, qasper.cut(units, qasper.paragraphs))
    qrels = {}
    for row in qasper.read(folder, "qrels"):
        qrels.setdefault(row["query_id"], {})[row["doc_id"]] = 1
    run = {}
    for row in qasper.read(folder, "runs"):
        if row["system"] == "bm25@paper" and row["query_id"] in qrels:
            run.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
    names = ["P@5", "P@10", "RR", "Success@1", "Success@5", "SetP"]
    ours = score(run, suite=tmp_path, measures=names, topics="common")
    theirs = score(run, qrels=qrels, measures=names, topics="common")
    for name in names:
        apart = [c for c in run if ours.value(name, c) != theirs.value(name, c)]
        assert not apart, name


def test_grains__credit_documents_with_what_no_chunk_holds(chunking, data):
    """Every list is inside the right paper; how much of that is the right words differs."""
    how, folder, chunks, run, _ = chunking
    names = ["retrieval.coverage_document", "retrieval.coverage_block", "retrieval.coverage_span",
             "retrieval.overcredit", "corpus.coverage", "corpus.qualifier_preserved"]  # fmt: skip
    scores = score(qasper.nested(run), suite=folder, measures=names)
    whole = {c["chunk_id"]: (c["block_first"], c["block_last"], c["text"]) for c in chunks}
    for case, items in data[2].items():
        kept = [i for i in distinct(items) if i["unit"] is not None]
        if not kept or len(kept) < len(distinct(items)) or not run[case]:
            continue
        assert scores.value(names[0], case) == 1.0
        shown = [whole[u] for u in run[case]]
        touched = [any(a <= i["block"] <= b for a, b, _ in shown) for i in kept]
        holding = [
            any(a <= i["block"] <= b and reference.fold(i["quote"]) in reference.fold(text)
                for a, b, text in shown)
            for i in kept
        ]  # fmt: skip
        assert scores.value(names[1], case) == pytest.approx(sum(touched) / len(kept))
        assert scores.value(names[2], case) == pytest.approx(sum(holding) / len(kept))
        assert scores.value(names[3], case) == pytest.approx(1 - sum(holding) / len(kept))
    assert scores.mean("corpus.coverage") == 1.0
    kept = scores.mean("corpus.qualifier_preserved")
    assert (0.9 < kept < 1.0) if how is not qasper.windows else kept < 0.6
