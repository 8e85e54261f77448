"""Time the best k passages by BM25 beside tantivy-py and bm25s (numba), in one process.

python bench/peers/lexical.py --update bench/README.md
python bench/peers/lexical.py --corpus passages.parquet --column text

All three get the same words of the same passages: random ones with the statistics of English text,
or a Parquet file. ragcore has tantivy's formula and lengths, and its documents are compared with
tantivy's before a time is shown; bm25s has Lucene's formula, whose order differs only by lengths.
Query objects, token ids and indexes are made outside of the timing. The tools take turns, one
thread each, the same questions; the median of turns counts.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from report import machine, number, publish, table, tell

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from passages import QUESTIONS, Text, make_text, questions, read_text

from ragcore_kernels.bm25 import Collection, Scorer

RANKS = (10, 100, 1_000)
TOOLS = ("ragcore", "tantivy", "bm25s")


@dataclass
class Times:
    """Wall and CPU seconds of one tool, a turn each."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def turn(self, run: Callable[[], Any]) -> Any:
        """Run once and note the time."""
        cpu, wall = time.process_time(), time.perf_counter()
        out = run()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        return out


def words_of(asked: list[int]) -> list[str]:
    """Words that stand for codes."""
    return [f"w{code}" for code in asked]


def open_tantivy(text: Text, folder: Path) -> tuple[Any, Any]:
    """Searcher and schema; the index is made if it is not there."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("number", fast=True)
    schema = builder.build()
    made = folder / "meta.json"
    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(schema, path=str(folder))
    if not made.exists() or not index.searcher().num_docs:
        tell("tantivy: indexing")
        writer = index.writer(heap_size=2_000_000_000, num_threads=1)
        for d in range(text.starts.size - 1):
            content = {"text": " ".join(words_of(text.words(d))), "number": d}
            writer.add_document(tantivy.Document.from_dict(content, schema))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
    return index.searcher(), schema


def open_bm25s(text: Text, folder: Path) -> Any:
    """A retriever with the numba backend; the index is made if it is not there."""
    import bm25s

    if (folder / "params.index.json").exists():
        found = bm25s.BM25.load(str(folder), load_corpus=False)
        found.backend = "numba"
        return found
    tell("bm25s: indexing")
    found = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    codes = [text.words(d) for d in range(text.starts.size - 1)]
    names = {f"w{code}": code for code in range(text.offsets.size - 1)}
    found.index((codes, names), show_progress=False)
    found.save(str(folder), show_progress=False)
    return found


def tantivy_queries(schema: Any, asked: list[list[int]]) -> list[Any]:
    """A disjunction of terms for each question."""
    import tantivy

    return [
        tantivy.Query.boolean_query([
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", word))
            for word in words_of(words)
        ])
        for words in asked
    ]  # fmt: skip


def disagreements(ours: Any, theirs: list[Any], searcher: Any) -> int:
    """Questions whose documents differ from tantivy's by more than the rounding of scores."""
    bad = 0
    for q, result in enumerate(theirs):
        n = ours.counts[q]
        scores = np.array([s for s, _ in result.hits], np.float32)
        near = 8 * np.spacing(ours.scores[q, :n])
        if n != scores.size or (np.abs(scores - ours.scores[q, :n]) > near).any():
            bad += 1
            continue
        numbers = searcher.fast_field_values("number", [at for _, at in result.hits])
        apart = np.flatnonzero(np.array(numbers, np.int64) != ours.docs[q, :n])
        # a document may stand elsewhere only among scores that rounding cannot tell apart
        edge = ours.scores[q, n - 1] if n else 0.0
        for i in apart:
            there = np.flatnonzero(ours.docs[q, :n] == numbers[i])
            value = ours.scores[q, there[0]] if there.size else edge
            bad += abs(scores[i] - value) > near[i]
    return bad


def jobs_of(
    scorer: Scorer, searcher: Any, retriever: Any, schema: Any, asked: list[list[int]], k: int
) -> dict[str, Callable[[], Any]]:
    """What each tool does with a set of questions, all of it prepared."""
    built = tantivy_queries(schema, asked)
    offsets, terms = np.cumsum([0, *map(len, asked)]), np.concatenate(asked)
    return {
        "ragcore": lambda: scorer.search(offsets, terms, k),
        "tantivy": lambda: [searcher.search(query, limit=k) for query in built],
        "bm25s": lambda: retriever.retrieve(
            asked, k=k, n_threads=1, show_progress=False, backend_selection="numba"
        ),
    }


def rows_of(text: Text, folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """One row for each set of questions and each k."""
    searcher, schema = open_tantivy(text, folder / "tantivy")
    collection = Collection(text.offsets, text.docs, text.tfs, text.lengths)
    start = time.perf_counter()
    scorer = Scorer(collection, lengths="tantivy")
    tell(f"ragcore: {time.perf_counter() - start:.2f} s to prepare all lists, compilation included")
    retriever = open_bm25s(text, folder / "bm25s")
    rows = []
    for name, n_terms in QUESTIONS.items():
        asked = questions(text, n_terms, options.questions)
        for k in options.k:
            jobs = jobs_of(scorer, searcher, retriever, schema, asked, k)
            found = {tool: jobs[tool]() for tool in TOOLS}
            bad = disagreements(found["ragcore"], found["tantivy"], searcher)
            if bad:
                tell(f"{name}, k = {k}: {bad} documents differ from tantivy's")
            times = {tool: Times() for tool in TOOLS}
            for _ in range(options.turns):
                for tool in TOOLS:
                    times[tool].turn(jobs[tool])
            tell(f"{name}, k = {k}")
            rows.append([name, f"{k:,}", *figures(times, len(asked)), str(bad)])
    return rows


def figures(times: dict[str, Times], n: int) -> list[str]:
    """Microseconds a question, and ratios of wall and of CPU time."""
    wall = {tool: statistics.median(t.wall) for tool, t in times.items()}
    out = [number(1e6 * wall[tool] / n) for tool in TOOLS]
    own = times["ragcore"]
    for tool in TOOLS[1:]:
        by_wall = statistics.median(a / b for a, b in zip(times[tool].wall, own.wall, strict=True))
        by_cpu = statistics.median(a / b for a, b in zip(times[tool].cpu, own.cpu, strict=True))
        out += [f"**{number(by_wall)}**", number(by_cpu)]
    return out


def statistics_of(text: Text) -> str:
    """What the passages are like."""
    df, n = np.diff(text.offsets), text.starts.size - 1
    dense = df >= n / 32
    return (
        f"{n:,} passages, {text.tokens.size / n:.0f} words each, {df.size:,} terms, "
        f"{text.docs.size:,} postings, {int(dense.sum())} terms in one passage of 32 or more"
    )


def main() -> None:
    """Print the table; with --update also put it into a Markdown file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=286_823, help="how many random passages")
    parser.add_argument("--corpus", type=Path, help="a Parquet file of passages instead")
    parser.add_argument("--column", default="text", help="its column of texts")
    parser.add_argument("--questions", type=int, default=256, help="questions of each length")
    parser.add_argument("--turns", type=int, default=5, help="timed turns of each tool")
    parser.add_argument("--k", type=int, nargs="+", default=RANKS, help="how many passages to find")
    parser.add_argument("--update", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    text = (
        read_text(options.corpus, options.column) if options.corpus else make_text(options.passages)
    )
    digest = hashlib.sha256(text.tokens.tobytes() + text.starts.tobytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / "ragcore-lexical" / digest
    rows = rows_of(text, folder, options)
    head = [
        "questions", "k", "ragcore us", "tantivy us", "bm25s us", "tantivy / ragcore, wall",
        "CPU", "bm25s / ragcore, wall", "CPU", "documents that differ from tantivy's",
    ]  # fmt: skip
    key = "lexical" if options.corpus is None else f"lexical {options.corpus.stem}"
    lines = [f"{machine()}; {statistics_of(text)}", "", *table(head, rows, True)]
    publish(key, lines, options.update)


if __name__ == "__main__":
    main()
