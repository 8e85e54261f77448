"""Files of classic test collections -> the tables of their importer."""

from __future__ import annotations

import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ragcore.errors import InputError
from ragcore.public.files import as_published, fields, frame, held, read_text

ROBUST = "robust03_qrels.txt"
ROBUST_RUNS = ("InexpC2", "SABIR03BASE", "pircRBa1", "rutcor03100", "humR03dc", "NLPR03vb10",
               "UAmsT03RDesc")  # fmt: skip
"""Of 17 runs in the repository, those that are here; each a file `input.<name>.gz`."""
WEB = "wt.qrels"
WEB_QUERIES, WEB_RUNS = "wt.queries.tsv", {
    "bm25-wt11": "valid.wt11.run", "bm25-wt12": "test.wt12.run", "bm25-wt13": "test.wt13.run",
    "bm25-wt14": "test.wt14.run",
}  # fmt: skip
CACM, CACM_RUN, CACM_TOPICS, CACM_QRELS = (
    "cacm.tar.gz", "cacm-bm25.txt", "topics.cacm.txt", "qrels.cacm.txt",
)  # fmt: skip
CRANFIELD, CRANFIELD_QUERIES, CRANFIELD_QRELS = "cran.all.1400", "cran.qry", "cranqrel"

RUN = {"system": pl.String, "query_id": pl.String, "doc_id": pl.String, "rank": pl.Int32,
       "score": pl.Float64}  # fmt: skip
QRELS = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
_TOPICS = {"query_id": pl.String, "text": pl.String}
STAMP = re.compile(r"CA\d{6}.*")
CITED = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")
"""In a record of CACM: when it was entered, and a line of its citation lists."""
FIELD = re.compile(r"^\.([A-Z])(?: +(\S+))?[ \t\r]*\n", re.MULTILINE)
"""In the Cranfield files: where a field begins; `.I` has a number."""


def robust03(folder: Path) -> dict[str, pl.DataFrame]:
    """TREC 2003 Robust: judgements and seven submitted runs."""
    return {"qrels": _qrels(folder, ROBUST)} | {
        f"run_{name}": _run(name, folder, f"input.{name}.gz") for name in ROBUST_RUNS
    }


def web(folder: Path) -> dict[str, pl.DataFrame]:
    """TREC Web 2011-2014: topics, judgements and runs of those years; of earlier ones nothing."""
    runs = pl.concat([_run(name, folder, file) for name, file in WEB_RUNS.items()])
    lines = fields(_text(folder, WEB_QUERIES), folder / WEB_QUERIES, 3)
    kept = set(runs["query_id"].to_list())
    asked = [(number, text.strip()) for _, (_, number, text) in lines if number in kept]
    qrels = _qrels(folder, WEB)
    own = [topic in kept for topic in qrels["query_id"].to_list()]
    return {
        "queries": pl.DataFrame(asked, _TOPICS, orient="row"),
        "qrels": qrels.filter(pl.Series(own, dtype=pl.Boolean)),
        "runs": runs,
    }


def cacm(folder: Path) -> dict[str, pl.DataFrame]:
    """CACM: records without their citation lists, topics, judgements and Anserini's run."""
    path, rows = held(folder, CACM), []
    with as_published(path, "an archive of records"), tarfile.open(path) as archive:
        for member in archive:
            opened = archive.extractfile(member)
            if opened is not None:
                name = Path(member.name).stem
                rows.append((name, *_record(opened.read().decode("latin-1"))))
    asked = re.findall(
        r"<DOC>\s*<DOCNO>\s*(\S+)\s*</DOCNO>(.*?)</DOC>", _text(folder, CACM_TOPICS), re.DOTALL
    )
    kinds = {"doc_id": pl.String, "title": pl.String, "text": pl.String}
    return {
        "corpus": pl.DataFrame(sorted(rows), kinds, orient="row"),
        "queries": pl.DataFrame(
            [(name, _folded(text)) for name, text in asked], _TOPICS, orient="row"
        ),
        "qrels": _qrels(folder, CACM_QRELS),
        "runs": _run("Anserini", folder, CACM_RUN),
    }


def cranfield(folder: Path) -> dict[str, pl.DataFrame]:
    """Cranfield: documents, questions numbered as they stand, grades turned so that 4 is best.

    A code from 1 (best) to 4 becomes 5 less it; -1, no interest, stays.
    """
    corpus = [
        {"doc_id": one.get("I", ""), "title": one.get("T", ""), "text": one.get("W", ""),
         "author": one.get("A", ""), "bib": one.get("B", "")}
        for one in _records(folder, CRANFIELD)
    ]  # fmt: skip
    asked = [
        {"query_id": str(number), "text": one.get("W", ""), "source_query_id": one.get("I", "")}
        for number, one in enumerate(_records(folder, CRANFIELD_QUERIES), 1)
    ]
    path, rows = folder / CRANFIELD_QRELS, []
    for number, line in fields(_text(folder, CRANFIELD_QRELS), path, 3, None):
        with as_published(path, "question, document and code", number):
            topic, document, grade = line[0], line[1], int(line[2])
        rows.append((topic, document, 5 - grade if grade > 0 else grade, grade))
    return {
        "corpus": pl.DataFrame(corpus),
        "queries": pl.DataFrame(asked),
        "qrels": frame(rows, QRELS | {"source_code": pl.Int32}, path),
    }


def _text(folder: Path, name: str) -> str:
    return read_text(folder, name, "latin-1")


def _columns(folder: Path, name: str, n: int) -> list[list[str]]:
    """A file of `n` fields a line, parted by spaces or tabs, as columns."""
    text = _text(folder, name)
    words = text.split()
    if len(words) != n * sum(1 for line in text.split("\n") if line.strip()):
        for _ in fields(text, folder / name, n, None):
            pass  # it names the line
    return [words[at::n] for at in range(n)]


def _qrels(folder: Path, name: str) -> pl.DataFrame:
    topics, _, names, grades = _columns(folder, name, 4)
    columns = {"query_id": topics, "doc_id": names, "relevance": grades}
    return frame(columns, QRELS, folder / name)


def _run(system: str, folder: Path, name: str) -> pl.DataFrame:
    topics, _, names, ranks, scores, _ = _columns(folder, name, 6)
    columns = {"system": [system] * len(topics), "query_id": topics, "doc_id": names,
               "rank": ranks, "score": scores}  # fmt: skip
    return frame(columns, RUN, folder / name)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _record(page: str) -> tuple[str, str]:
    """Title and text of a record: paragraphs up to the note of when it was entered."""
    start, end = page.index("<pre>") + len("<pre>"), page.index("</pre>")
    lines = [
        line for line in html.unescape(page[start:end]).split("\n") if not CITED.fullmatch(line)
    ]
    parts = [_folded(part) for part in re.split(r"\n\s*\n", "\n".join(lines))]
    kept = [part for part in parts if part and not STAMP.fullmatch(part)]
    return (kept[0], "\n\n".join(kept[1:])) if kept else ("", "")


def _records(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Records of a Cranfield file, each a dict by the letter of a field."""
    text = _text(folder, name)
    marks = list(FIELD.finditer(text))
    if not marks or marks[0][1] != "I":
        raise InputError(folder / name, f"begins with {text[:20]!r}", "records that begin with .I")
    one: dict[str, str] = {}
    for mark, after in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        if mark[1] == "I":
            if one:
                yield one
            one = {"I": mark[2] or ""}
        else:
            part = _folded(text[mark.end() : after])  # of a field that stands twice both count
            one[mark[1]] = f"{one.get(mark[1], '')} {part}".strip()
    if one:
        yield one
