"""`ragcore search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import main, options, say_notes

_WHAT = (
    click.option(
        "--strategy", default="bm25", show_default=True,
        type=click.Choice(["bm25", "dense", "dense-exact", "hybrid", "hybrid-exact"]),
        help="dense is HNSW, dense-exact brute force; hybrid fuses bm25 with either.",
    ),
    click.option("--candidate-k", type=click.IntRange(1), default=20, show_default=True,
                 help="Rows from each channel."),
    click.option("--context-k", type=click.IntRange(1), default=5, show_default=True,
                 help="Rows that the generator would be shown: the one cut, after fusion."),
    click.option(
        "--threshold", "thresholds", multiple=True, metavar="[CHANNEL=]T",
        help="Drop what a channel (bm25, dense, dense_exact) scores below T; may be repeated.",
    ),
    click.option(
        "--filter", "filters", multiple=True, metavar="FILTER",
        help="valid_at, acl, COLUMN (equal to the case's own) or COLUMN=VALUE; may be repeated.",
    ),
    click.option(
        "--filter-when", type=click.Choice(["before", "after"]), default="before",
        show_default=True,
        help="Choose candidates among eligible chunks, or drop others from the candidates.",
    ),
)  # fmt: skip
_HOW = (
    click.option("--ef", type=click.IntRange(1), default=100, show_default=True,
                 help="Size of the list that HNSW keeps."),
    click.option("--method", type=click.Choice(["rrf", "combsum", "combmnz"]), default="rrf",
                 show_default=True, help="Of fusion."),
    click.option("--rrf-k", type=float, default=60.0, show_default=True, help="Of RRF."),
    click.option("--weight", "weights", type=float, multiple=True,
                 help="Of each channel in fusion, bm25 first; may be repeated."),
    click.option("--normalise", type=click.Choice(["min-max", "z-score", "rank"]),
                 default="min-max", show_default=True, help="Of scores, for combsum and combmnz."),
    click.option("--k1", type=float, help="Of BM25; default: as the index says."),
    click.option("--b", type=float, help="Of BM25; default: as the index says."),
    click.option(
        "--variant",
        type=click.Choice(["tantivy", "lucene", "robertson", "atire", "bm25l", "bm25+"]),
        help="Formula of BM25; default: as the index says.",
    ),
    click.option("--lengths", type=click.Choice(["exact", "tantivy"]),
                 help="Of documents, for BM25; default: as the index says."),
    click.option("--count-repeats", is_flag=True,
                 help="A term that stands twice in a question counts twice."),
    click.option("--batch", is_flag=True,
                 help="Answer all questions together: quicker, and timings are shares of a batch."),
    click.option("--threads", type=click.IntRange(1), default=1, show_default=True,
                 help="For --batch."),
)  # fmt: skip
INPUT = (
    click.option("--question-vectors", type=click.Path(path_type=Path),
                 help="File with an id and a vector for every case."),
    click.option("--embed", metavar="MODEL",
                 help="Embed the questions; default: as the index was."),
    click.option("--embed-cache", type=click.Path(file_okay=False, path_type=Path),
                 help="Folder that keeps embeddings by content; default: beside INDEX."),
    click.option("--chunks", type=click.Path(path_type=Path),
                 help="Refuse an index that is not of these chunks; default: those of the suite."),
    click.option("--split", help="Only cases of this split."),
)  # fmt: skip
"""Options of every command that asks an index questions."""


@main.command()
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("cases", type=click.Path(path_type=Path))
@options(_WHAT, _HOW, INPUT)
@click.option("--name", default="", help="Of the run; default: that of the file.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="RUN",
              help="Write the case batch here; it appears whole or not at all.")  # fmt: skip
@click.option("--explain", "explained", metavar="CASE",
              help="Print how BM25 scores this case's context, term by term, instead.")  # fmt: skip
def search(
    index: Path, cases: Path, output: Path | None, explained: str | None, **given: Any
) -> None:
    """Search INDEX with the questions of CASES and record every stage, scored and timed.

    CASES is a suite folder, or a file with the columns case_id and question. What comes out is a
    case batch that `ragcore score` reads: `ranked` is whole, `context` is cut to context-k.

    \b
    Example:
      ragcore search ka4.index data/ka4 --strategy bm25 -o bm25.arrow
      ragcore search ka4.index data/ka4 --explain stale-premise
    """
    from ragcore.errors import UsageError
    from ragcore.index.opened import open_index
    from ragcore.search import search as run

    if output is None and explained is None:
        raise UsageError("nowhere to write the run", "say -o RUN, or --explain CASE")
    opened = open_index(index, chunks=given["chunks"])
    settings = _settings(given)
    questions = questions_of(cases, opened, given)
    if explained is not None:
        from ragcore.index_explain import explain_case

        click.echo(explain_case(opened, questions, settings, explained))
        return
    assert output is not None
    found = run(opened, questions, settings, name=given["name"] or _stem(output),
                embed=embedder_of(index, opened, given))  # fmt: skip
    if found.lexical is not None:
        from ragcore.report.table import plain
        from ragcore.vocabulary import audit

        known = found.lexical.known
        seen = audit(found.lexical.texts, opened.options.analyzer, known)
        say_notes([plain(line) for line in seen.lines(questions.case_ids)])
    say_notes(found.notes)
    from ragcore.report.table import whole_file, write_arrow

    with whole_file(output) as file:
        write_arrow(found.table, file)


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _settings(given: dict[str, Any]) -> Any:
    from ragcore.filters import Filter
    from ragcore.search_settings import STRATEGIES, Settings

    channels = STRATEGIES[given["strategy"]]
    same = ("strategy", "candidate_k", "context_k", "filter_when", "method", "rrf_k",
            "normalise", "ef", "k1", "b", "variant", "lengths", "count_repeats",
            "threads")  # fmt: skip
    return Settings(
        **{name: given[name] for name in same},
        thresholds=dict(_threshold(text, channels) for text in given["thresholds"]),
        filters=tuple(Filter.parse(text) for text in given["filters"]),
        weights=tuple(given["weights"]) or None,
        timing="batch" if given["batch"] else "each",
    )


def _threshold(text: str, channels: tuple[str, ...]) -> tuple[str, float]:
    from ragcore.errors import UsageError

    channel, equals, value = text.rpartition("=")
    if not equals:
        if len(channels) != 1:
            raise UsageError(
                f"threshold {text} of which channel?",
                f"say {' or '.join(f'{name}={text}' for name in channels)}",
            )
        channel = channels[0]
    try:
        return channel, float(value)
    except ValueError:
        raise UsageError(f"threshold {text!r}", "a number, or CHANNEL=NUMBER") from None


def questions_of(cases: Path, opened: Any, given: dict[str, Any]) -> Any:
    """The questions, with vectors from a file where one is given; their suite's corpus checked."""
    from dataclasses import replace

    from ragcore import schema
    from ragcore.questions import check_suite, read_questions, vectors_by_id

    questions = read_questions(cases, given["split"])
    if given["chunks"] is None:
        check_suite(opened, questions)
    if given["question_vectors"] is not None:
        vectors = vectors_by_id(
            given["question_vectors"], questions.case_ids, schema.CASE_NAMES, "case"
        )
        questions = replace(questions, vectors=vectors.astype("float32"))
    return questions


def embedder_of(index: Path, opened: Any, given: dict[str, Any]) -> Any:
    """What embeds questions: as the index was embedded, or as asked; None if neither."""
    own = opened.options
    model = given["embed"] or (own.embedding if own.embedding not in ("column", "file") else "")
    if not model:
        return None

    def embed(texts: list[str]) -> Any:
        from ragcore.cli.embedding import cache_of, embedded

        cache = cache_of(index, given["embed_cache"])
        return embedded(model, texts, "question", cache, None, own.model)[0]

    return embed


def vectors_for(index: Path, opened: Any, questions: Any, given: dict[str, Any]) -> Any:
    """Vectors of the questions: theirs, else embedded as the index was."""
    from ragcore.search import vectors_of_questions

    return vectors_of_questions(opened, questions, embedder_of(index, opened, given))[0]
