"""tantivy: the durable store of texts and their analysis, and the one place that imports it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from ragcore.progress import Progress, no_progress
from ragcore_kernels.layout import I64
from ragcore_kernels.postings import Csr, TantivyPostings, UnsupportedFormat

ID, BODY, TITLE, TEXT = "chunk_id", "body", "title", "text"
FOLDER = "tantivy"
_OF_THE_DISK = re.compile(r"IO error|io::Error|os error|IoError|Failed to (open|create)")


def version() -> tuple[str, int]:
    """Version of tantivy, and the number of the format it writes."""
    text = str(getattr(tantivy, "__version__", ""))
    said = re.search(r"v?([\d.]+), index_format v(\d+)", text)
    return (said[1], int(said[2])) if said else (text, -1)


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(BODY, stored=False, tokenizer_name="whitespace", index_option="freq")
    for name in (TITLE, TEXT):
        builder.add_bytes_field(name, stored=True, indexed=False, fast=False)
    return builder.build()


def write(
    folder: Path,
    ids: list[str],
    titles: list[str | None] | None,
    texts: list[str],
    analysed: Iterable[str],
    *,
    delete: Iterable[str] = (),
    heap_bytes: int = 512_000_000,
    progress: Progress = no_progress,
) -> None:
    """Add chunks to the tantivy index in `folder`, made if it is not there; delete others first.

    Parameters
    ----------
    ids, titles, texts : of the chunks, in the order in which tantivy shall number them.
    analysed : the terms of each, joined by spaces.
    delete : ids of chunks to delete; those that are not there are ignored.

    Raises
    ------
    OSError
        If the disk is full, or the folder cannot be written to.
    """
    with _written():
        if (folder / "meta.json").is_file():
            index = tantivy.Index.open(str(folder))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            index = tantivy.Index(_schema(), path=str(folder))
        # One thread: documents keep their order, and the same input gives the same postings.
        writer = index.writer(heap_bytes, 1)
        try:
            for name in delete:
                query = tantivy.Query.term_query(index.schema, ID, name)
                writer.delete_documents_by_query(query)
            for done, (name, text, terms) in enumerate(zip(ids, texts, analysed, strict=True)):
                writer.add_document(_document(name, titles[done] if titles else None, text, terms))
                if done % 1000 == 0:
                    progress("indexing", done, len(ids))
            writer.commit()
        finally:  # its threads write to the folder until they are joined
            writer.wait_merging_threads()
    progress("indexing", len(ids), len(ids))


@contextmanager
def _written() -> Iterator[None]:
    """Make what tantivy says of the disk, a ValueError, what it is."""
    try:
        yield
    except ValueError as error:
        if _OF_THE_DISK.search(str(error)):
            raise OSError(str(error)) from None
        raise


def _document(name: str, title: str | None, text: str, terms: str) -> Any:
    document = tantivy.Document()
    document.add_text(ID, name)
    document.add_text(BODY, terms)
    if title:
        document.add_bytes(TITLE, title.encode())
    document.add_bytes(TEXT, text.encode())
    return document


def link(old: Path, new: Path) -> None:
    """A second tantivy index over the files of `old`, so that writing to it leaves `old` whole.

    Segment files never change: they are linked, and where the system cannot, copied. What tantivy
    replaces is copied.
    """
    new.mkdir(parents=True)
    for path in old.iterdir():
        if path.suffix == ".lock":
            continue
        if path.suffix == ".json":
            shutil.copy2(path, new / path.name)
            continue
        try:
            (new / path.name).hardlink_to(path)
        except OSError:
            shutil.copy2(path, new / path.name)


@dataclass(frozen=True)
class Read:
    """What a tantivy index holds, in tantivy's numbering, deleted documents included.

    Attributes
    ----------
    term_offsets, term_bytes : terms, ascending byte-wise.
    postings : of these terms.
    names : id of every document; "" for one that is deleted.
    from_text : why the stored texts were analysed anew instead of reading the segment files, or "".
    """

    term_offsets: I64
    term_bytes: Any
    postings: Csr
    names: list[str]
    from_text: str


def read(folder: Path, analyse: Callable[[list[str]], list[str]], *, verify: bool = False) -> Read:
    """Postings and ids of a tantivy index, from its segment files; else from the stored texts.

    Parameters
    ----------
    analyse : texts to their terms, joined by spaces; used where the files cannot be read.
    verify : also check the files' checksums.

    Notes
    -----
    Files of an unknown format, damaged ones, and postings that are not what tantivy itself says all
    lead to the stored texts; `Read.from_text` says why.
    """
    try:
        body = TantivyPostings.open(folder, BODY, verify=verify)
        (offsets, data), postings = body.read_all()
        names = _names(folder, verify)
        why = self_check(folder, offsets, data, postings)
    except UnsupportedFormat as error:
        return _from_text(folder, analyse, str(error))
    if why:
        return _from_text(folder, analyse, why)
    return Read(offsets, data, postings, names, "")


def _names(folder: Path, verify: bool) -> list[str]:
    """Id of every document, "" where it is deleted, from the postings of the field of ids."""
    field = TantivyPostings.open(folder, ID, verify=verify)
    (offsets, data), postings = field.read_all()
    alive = field.alive()
    names = [""] * field.n_docs
    raw = data.tobytes()
    bounds, cuts = offsets.tolist(), postings.offsets.tolist()
    for term, doc in zip(
        np.repeat(np.arange(len(cuts) - 1), np.diff(postings.offsets)).tolist(),
        postings.docs.tolist(), strict=True,
    ):  # fmt: skip
        if alive[doc]:
            names[doc] = raw[bounds[term] : bounds[term + 1]].decode()
    return names


def self_check(folder: Path, offsets: I64, data: Any, postings: Csr, n_terms: int = 200) -> str:
    """Compare decoded postings with what tantivy says of evenly spread terms.

    Returns
    -------
    What differs, of the first term whose number of documents does; "" if none does.
    """
    searcher = tantivy.Index.open(str(folder)).searcher()
    n = offsets.size - 1
    raw = np.asarray(data)
    for t in sorted({n * i // n_terms for i in range(n_terms)} if n else ()):
        term = raw[int(offsets[t]) : int(offsets[t + 1])].tobytes().decode("utf-8", "replace")
        said = searcher.doc_freq(BODY, term)
        found = int(postings.offsets[t + 1] - postings.offsets[t])
        if said != found:
            return f"term {term!r} has {found} postings in the files, {said} documents by tantivy"
    return ""


def stored(folder: Path, ids: list[str] | None = None) -> dict[str, tuple[str | None, str]]:
    """Title and text of chunks, by id, from tantivy's store; of all live ones if `ids` is None."""
    index = tantivy.Index.open(str(folder))
    searcher = index.searcher()
    out: dict[str, tuple[str | None, str]] = {}
    if ids is None:
        for address in _addresses(searcher):
            _put(out, searcher.doc(address))
        return out
    for name in ids:
        query = tantivy.Query.term_query(index.schema, ID, name)
        for _, address in searcher.search(query, limit=1).hits:
            _put(out, searcher.doc(address))
    return out


def _addresses(searcher: Any) -> list[Any]:
    """Addresses of all live documents, in their order."""
    n = searcher.num_docs
    return [a for _, a in searcher.search(tantivy.Query.all_query(), limit=n).hits] if n else []


def _put(out: dict[str, tuple[str | None, str]], document: Any) -> None:
    title = document.get_first(TITLE)
    out[document.get_first(ID)] = (
        bytes(title).decode() if title is not None else None,
        bytes(document.get_first(TEXT)).decode(),
    )


def _from_text(folder: Path, analyse: Callable[[list[str]], list[str]], why: str) -> Read:
    """The same by analysing what tantivy stores: slower, and free of its file format."""
    texts = stored(folder)
    names = list(texts)
    analysed = analyse([f"{title} {text}" if title else text for title, text in texts.values()])
    offsets, data, postings = count_terms(analysed)
    return Read(offsets, data, postings, names, why)


def count_terms(analysed: list[str]) -> tuple[I64, Any, Csr]:
    """Terms, ascending byte-wise, and postings of texts whose terms are joined by spaces."""
    lists: dict[str, dict[int, int]] = {}
    for doc, text in enumerate(analysed):
        for term in text.split(" ") if text else ():
            counts = lists.setdefault(term, {})
            counts[doc] = counts.get(doc, 0) + 1
    encoded = sorted((term.encode(), term) for term in lists)
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(raw) for raw, _ in encoded], out=offsets[1:])
    data = np.frombuffer(b"".join(raw for raw, _ in encoded), np.uint8)
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(lists[term]) for _, term in encoded], out=starts[1:])
    docs = np.array([d for _, term in encoded for d in lists[term]], np.int32)
    tfs = np.array([n for _, term in encoded for n in lists[term].values()], np.int32)
    return offsets, data, Csr(starts, docs, tfs)
