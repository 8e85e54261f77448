"""QASPER as a suite: what it holds, and the figures that are known of its vectors."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import polars as pl
import pyarrow as pa
import pytest

import importers
import qasper as plain
import ragcore
import tables
from ragcore.public import qasper

CONTEXT = "qasper.evidence_f1(of=context)"


@pytest.fixture(scope="module")
def world(collections):
    return collections("qasper")


@pytest.fixture(scope="module")
def made(world):
    return world.made


@pytest.fixture(scope="module")
def qrels(world):
    return world.shared["qrels"].select("query_id", "doc_id", "relevance").to_arrow()


def test_counts__are_those_of_the_subset(made):
    cases = made.cases.to_pylist()
    assert (len(cases), made.chunks.num_rows) == (184, 2923)
    assert Counter(c["source_split"] for c in cases) == {"train": 82, "dev": 75, "test": 27}
    assert Counter(c["split"] for c in cases) == {"development": 82, "validation": 75, "test": 27}
    assert len({c["doc_id"] for c in cases}) == 53
    assert sum(len(c["annotations"]) for c in cases) == 204
    bare = [i for c in cases for i in c["evidence"] if not i["in_snapshot"]]
    assert all(i["start"] is None and i["relevance"] == 0 and i["required"] for i in bare)
    said = " ".join(made.notes)
    assert "23 evidence rows of 15 questions" in said
    assert "section heading 6, table or figure 17" in said
    assert "1 paper of 108" in said


def test_items__lie_where_they_say(made):
    """Block and code points of the paper: its units with a line break between them."""
    papers, blocks = {}, {}
    for chunk in made.chunks.to_pylist():
        whole = papers.setdefault(chunk["doc_id"], [])
        assert chunk["block_first"] == chunk["block_last"] == len(whole)
        blocks[chunk["doc_id"], len(whole)] = chunk["text"]
        whole.append(chunk["text"])
    texts = {name: "\n".join(whole) for name, whole in papers.items()}
    for chunk in made.chunks.to_pylist():
        assert texts[chunk["doc_id"]][chunk["start"] : chunk["end"]] == chunk["text"]
    placed = 0
    for case in made.cases.to_pylist():
        for item in case["evidence"]:
            assert item["doc_id"] == case["doc_id"]
            if item["in_snapshot"]:
                placed += 1
                assert texts[item["doc_id"]][item["start"] : item["end"]] == item["quote"]
                assert item["quote"] in blocks[item["doc_id"], item["block"]]
    assert placed == 291


@pytest.mark.parametrize(("scope", "known"), [("pooled", 0.1649), ("per-paper", 0.4667)])
def test_vectors__rank_as_they_are_known_to(scope, known, world, qrels):
    run = world.found("dense-exact", scope)
    by_unit = ragcore.score(run, qrels=qrels, measures=["nDCG@10", "R@10"], topics="common")
    assert by_unit.mean("nDCG@10") == pytest.approx(known, abs=5e-5)
    assert len(by_unit.per_case("nDCG@10")) == 164
    scores = world.scored(run)
    row = next(r for r in scores.rows() if r["measure"] == "nDCG@10")
    assert (row["n_ok"], row["n_na"]) == (164, 20)
    # Where no unit holds two quotes, items and units are one and the same.
    held = Counter()
    for case in world.made.cases.to_pylist():
        held[case["case_id"]] = sum(item["in_snapshot"] for item in case["evidence"])
    units = Counter(row["query_id"] for row in qrels.to_pylist())
    same = [name for name in units if held[name] == units[name]]
    assert len(same) == 158
    for name in same:
        for measure in ("nDCG@10", "R@10"):
            assert scores.value(measure, name) == pytest.approx(
                by_unit.value(measure, name), abs=1e-12
            )


def test_questions__stay_inside_their_paper(world):
    run = world.found("hybrid-exact", "per-paper")
    paper = {c["case_id"]: c["doc_id"] for c in world.made.cases.to_pylist()}
    for row in run.to_pylist():
        assert {item["id"].rsplit(":", 2)[0] for item in row["ranked"]} == {paper[row["case_id"]]}


def f1(found, wanted):
    """The collection's rule: distinct common ones over both lengths, 1 for two empty lists."""
    if not found and not wanted:
        return Fraction(1)
    return Fraction(2 * len(set(found) & set(wanted)), len(found) + len(wanted))


def test_evidence_f1__of_the_context_is_the_collections_arithmetic(world):
    """By ids of units; and by texts, as the collection has it, where quotes are whole units."""
    run = world.found("bm25", "per-paper")
    scores = world.scored(run)
    texts = dict(world.shared["corpus"].select("doc_id", "text").iter_rows())
    quotes, cut = {}, set()
    rows = world.shared["evidence"]
    for row in rows.filter(pl.col("kind") == "evidence").iter_rows(named=True):
        key = row["query_id"], row["annotation_id"]
        quotes.setdefault(key, []).append(row["quote"])
        if row["match"] == "substring":
            cut.add(row["query_id"])
    answers = world.shared["answers"]
    told, labels = {}, {}
    for name, by in answers.select("query_id", "annotation_id").iter_rows():
        told.setdefault(name, []).append(quotes.get((name, by), []))
    cases = world.made.cases.to_pylist()
    for case in cases:
        labels[case["case_id"]] = [each["evidence"] for each in case["annotations"]]
    shown = {row["case_id"]: [i["id"] for i in row["context"]] for row in run.to_pylist()}
    compared, total = 0, Fraction(0)
    for name, gold in labels.items():
        wanted = max(f1(shown[name], each) for each in gold)
        total += wanted
        assert scores.value(CONTEXT, name) == pytest.approx(float(wanted), abs=1e-15)
        kept = [[e for e in each if "FLOAT SELECTED" not in e] for each in gold]
        assert scores.value("qasper.evidence_f1(of=context,text_only=True)", name) == pytest.approx(
            float(max(f1(shown[name], each) for each in kept)), abs=1e-15
        )
        if name not in cut:
            compared += 1
            found = [texts[one] for one in shown[name]]
            assert max(f1(found, each) for each in told[name]) == wanted
    assert compared == 184 - len(cut) == 166
    assert scores.mean(CONTEXT) == pytest.approx(float(total / 184))


def test_ceiling__is_what_the_notes_say(world, made):
    """A context of one annotator's own units, the best of them."""
    units = set(made.chunks["chunk_id"].to_pylist())
    most, rows = {}, []
    for case in made.cases.to_pylist():
        lists = [list(dict.fromkeys(e for e in a["evidence"] if e in units))
                 for a in case["annotations"]]  # fmt: skip
        gold = [a["evidence"] for a in case["annotations"]]
        best = max(range(len(gold)), key=lambda i: f1(lists[i], gold[i]))
        most[case["case_id"]] = f1(lists[best], gold[best])
        rows.append({"case_id": case["case_id"], "context": [{"id": one} for one in lists[best]]})
    kind = pa.schema(
        [("case_id", pa.string()), ("context", pa.list_(pa.struct([("id", pa.string())])))]
    )
    run = pa.Table.from_pylist(rows, schema=kind)
    scores = ragcore.score(run, suite=world.suite, measures=[CONTEXT, "corpus.coverage"])
    known = float(sum(most.values()) / len(most))
    assert scores.mean(CONTEXT) == pytest.approx(known)
    assert f"qasper.evidence_f1 {known:.4f} at most" in " ".join(made.notes)
    rows = {r["measure"]: r for r in scores.rows()}
    assert rows["corpus.coverage"]["n_ok"] == 169


def test_labels__survive_other_chunks(made, shared_data, tmp_path):
    """Two paragraphs in one chunk: nothing goes stale, all of it can be found."""
    units = plain.papers(shared_data / "qasper")
    chunks = plain.cut(units, plain.pairs)
    tables.write_suite(tmp_path, made.cases)
    plain.write_chunks(tmp_path, chunks)
    of_paper = {}
    for chunk in chunks:
        of_paper.setdefault(chunk["doc_id"], []).append(chunk["chunk_id"])
    cases = made.cases.to_pylist()
    run = plain.nested({c["case_id"]: of_paper[c["doc_id"]] for c in cases})
    scores = ragcore.score(run, suite=tmp_path, measures=["R", "NumRel", "retrieval.coverage"])
    assert scores.audits[0].counts["evidence items stale"] == 0
    assert scores.mean("R") == scores.mean("retrieval.coverage") == 1.0
    assert sum(n or 0 for n in scores.per_case("NumRel").values()) == 291


# --- the official archives


def archive(path, members):
    raw = {name: json.dumps(content).encode() for name, content in members.items()}
    importers.write_tar(path, raw)


def rebuilt(pinned, papers):
    """Papers in the collection's own form, out of the pinned tables."""
    rows = {name: pinned[name].to_dicts() for name in ("corpus", "queries", "answers", "evidence")}
    out = {}
    for paper in papers.iter_rows(named=True):
        own = [u for u in rows["corpus"] if u["paper_id"] == paper["paper_id"]]
        sections = [{"section_name": "", "paragraphs": []}
                    for _ in range(max(u["section_index"] for u in own) + 1)]  # fmt: skip
        abstract = ""
        for unit in own:
            if unit["unit"] == "abstract":
                abstract = unit["text"]
                continue
            section = sections[unit["section_index"]]
            section["section_name"] = unit["section"]
            blank = unit["paragraph_index"] - len(section["paragraphs"])
            section["paragraphs"] += [""] * blank + [unit["text"]]
        asked = []
        for question in (q for q in rows["queries"] if q["paper_id"] == paper["paper_id"]):
            said = []
            for answer in (a for a in rows["answers"] if a["query_id"] == question["query_id"]):
                quotes = {
                    kind: [e["quote"] for e in rows["evidence"] if e["kind"] == kind
                           and e["query_id"] == question["query_id"]
                           and e["annotation_id"] == answer["annotation_id"]]
                    for kind in ("evidence", "highlight")
                }  # fmt: skip
                said.append({"annotation_id": answer["annotation_id"], "answer": {
                    "unanswerable": answer["type"] == "unanswerable",
                    "extractive_spans": answer["spans"], "yes_no": answer["yes_no"],
                    "free_form_answer": answer["text"] if answer["type"] == "free_form" else "",
                    "evidence": quotes["evidence"], "highlighted_evidence": quotes["highlight"],
                }})  # fmt: skip
            asked.append(
                {"question": question["text"], "question_id": question["query_id"], "answers": said}
            )
        out[paper["paper_id"]] = {
            "title": paper["title"], "abstract": abstract, "full_text": sections, "qas": asked,
        }  # fmt: skip
    return out


def test_official__gives_the_same_cases_for_the_papers_that_are_whole(world, made, tmp_path):
    pinned = world.shared
    papers = pinned["papers"].filter(pl.col("labels") == "complete")
    assert papers.height == 10
    train = rebuilt(pinned, papers)
    archive(
        tmp_path / "qasper-train-dev-v0.3.tgz",
        {"qasper-train-v0.3.json": train, "qasper-dev-v0.3.json": {}, "README.md": {}},
    )
    archive(tmp_path / "qasper-test-and-evaluator-v0.3.tgz", {"./qasper-test-v0.3.json": {}})
    again = qasper.build(qasper.official(tmp_path))
    names = again.cases.column_names
    known = {c["case_id"]: c for c in made.cases.drop_columns(["vector"]).to_pylist()}
    cases = again.cases.to_pylist()
    assert len(cases) == 51
    assert names == [name for name in made.cases.column_names if name != "vector"]
    for case in cases:
        assert case == known[case["case_id"]]
    units = {c["chunk_id"]: c for c in made.chunks.drop_columns(["vector"]).to_pylist()}
    assert again.chunks.num_rows == 985
    for chunk in again.chunks.to_pylist():
        assert chunk == units[chunk["chunk_id"]]
