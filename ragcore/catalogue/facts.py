"""What a suite holds, counted: cases by language, split and type, documents, labels, wording."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragcore.evidence import Evidence
from ragcore.measures.inputs import Shared
from ragcore.reviewed import is_reviewed
from ragcore.suites import Suite
from ragcore.wording import overlap

STAGES = ((2, 50, 500, 200), (1, 20, 300, 80))
"""Scale of a suite that sets defaults: stage, and the least documents, chunks and questions."""
NO_TYPE = "(none)"


@dataclass
class Kind:
    """One query type.

    Attributes
    ----------
    cases : how many cases, each once whatever its languages.
    by_split : of them, by split.
    shared, words : content words of its questions that their evidence has, and all of them; over
        questions with required evidence in texts.
    """

    cases: int = 0
    by_split: Counter[str] = field(default_factory=Counter)
    shared: int = 0
    words: int = 0

    @property
    def overlap(self) -> float | None:
        """Share of content words; None without any."""
        return self.shared / self.words if self.words else None


@dataclass
class Facts:
    """A suite, counted.

    Attributes
    ----------
    n_cases, n_rows : semantic cases; their rows, one a language.
    langs, splits, answerable, origins, statuses : rows by value, "" for none given; `answerable`
        and `splits` count cases.
    kinds : query types.
    n_chunks, n_documents : of the corpus, 0 without one.
    n_items, n_stale, n_unplaced : items of evidence; those whose quote is gone; those that lie in
        no chunk, though nothing says that the corpus lacks them.
    n_quoted, n_absent : items whose quote was looked for; those that the corpus lacks, as they say.
    stale : the stale ones, see `Evidence.stale_items`.
    n_reviewed : rows that a person reviewed; None where the suite does not say.
    """

    n_cases: int
    n_rows: int
    langs: Counter[str]
    splits: Counter[str]
    answerable: Counter[str]
    origins: Counter[str]
    statuses: Counter[str]
    kinds: dict[str, Kind]
    n_chunks: int = 0
    n_documents: int = 0
    n_items: int = 0
    n_stale: int = 0
    n_unplaced: int = 0
    n_quoted: int = 0
    n_absent: int = 0
    stale: list[dict[str, Any]] = field(default_factory=list)
    n_reviewed: int | None = None

    @property
    def stage(self) -> int:
        """The stage of scale that the suite meets: 2, 1, or 0 for neither."""
        for stage, documents, chunks, questions in STAGES:
            have = (self.n_documents, self.n_chunks, self.n_cases)
            if all(a >= b for a, b in zip(have, (documents, chunks, questions), strict=True)):
                return stage
        return 0


def facts_of(suite: Suite) -> Facts:
    """Count a suite.

    Raises
    ------
    InputError
        If its labels or chunks are broken.
    """
    table = suite.cases
    names = [str(v) for v in table["case_id"].to_pylist()]
    columns = {
        name: _column(table, name)
        for name in ("lang", "split", "answerable", "origin", "status", "type", "reviewed")
    }
    by_case = dict(zip(names, range(len(names)), strict=True))  # the last row of each
    out = Facts(
        len(by_case), len(names), _counted(columns["lang"]),
        _counted(columns["split"][row] for row in by_case.values()),
        _counted(columns["answerable"][row] for row in by_case.values()),
        _counted(columns["origin"]), _counted(columns["status"]), {},
    )  # fmt: skip
    if "reviewed" in table.column_names:
        out.n_reviewed = sum(map(is_reviewed, columns["reviewed"]))
    shared = Shared(suite, None)
    evidence = shared.evidence
    if shared.chunks is not None:
        out.n_chunks = len(shared.chunks)
        documents = shared.chunks.column("doc_id")
        ids = shared.chunks.ids if documents is None else documents
        out.n_documents = len(ids.unique())
    wording: list[tuple[int, int] | None] = [None] * len(names)
    if evidence is not None:
        wording = _wording(table, shared, evidence)
        out.n_items, out.n_stale = len(evidence.lists.items), int(evidence.stale.sum())
        out.n_quoted = int((evidence.looked & ~evidence.absent).sum())
        out.n_absent = int(evidence.absent.sum())
        # A document that the corpus does not have is a unit beyond its chunks.
        held = np.append(0, np.cumsum(evidence.units < out.n_chunks))
        empty = held[evidence.covers[1:]] == held[evidence.covers[:-1]]
        if out.n_chunks:
            out.n_unplaced = int((empty & ~evidence.stale & ~evidence.absent).sum())
        out.stale = evidence.stale_items(table)
    out.kinds = _kinds(by_case, columns, names, wording)
    return out


def _column(table: Any, name: str) -> list[Any]:
    return table[name].to_pylist() if name in table.column_names else [None] * table.num_rows


def _counted(values: Iterable[Any]) -> Counter[str]:
    return Counter("" if value is None else str(value).lower() if isinstance(value, bool)
                   else str(value) for value in values)  # fmt: skip


def _kinds(
    by_case: dict[str, int], columns: dict[str, list[Any]], names: list[str],
    wording: list[tuple[int, int] | None],
) -> dict[str, Kind]:  # fmt: skip
    kinds: dict[str, Kind] = defaultdict(Kind)
    for row in by_case.values():
        for kind in _types(columns["type"][row]):
            kinds[kind].cases += 1
            kinds[kind].by_split[columns["split"][row] or ""] += 1
    for row, pair in enumerate(wording):
        if pair is not None:
            for kind in _types(columns["type"][row]):
                kinds[kind].shared += pair[0]
                kinds[kind].words += pair[1]
    return dict(sorted(kinds.items(), key=lambda pair: (-pair[1].cases, pair[0])))


def _types(value: Any) -> list[str]:
    return [NO_TYPE] if not value else [value] if isinstance(value, str) else list(value)


def _wording(table: Any, shared: Shared, evidence: Evidence) -> list[tuple[int, int] | None]:
    """Content words of each question that its required evidence has, and all of them."""
    questions, langs = _column(table, "question"), _column(table, "lang")
    texts: dict[Any, list[str | None]] = {}
    out: list[tuple[int, int] | None] = []
    wanted = evidence.required if evidence.required.any() else evidence.relevance > 0
    for row, question in enumerate(questions):
        begin, end = evidence.offsets[row], evidence.offsets[row + 1]
        units = [
            unit for item in range(begin, end) if wanted[item]
            for unit in evidence.units[evidence.covers[item] : evidence.covers[item + 1]].tolist()
        ]  # fmt: skip
        lang = langs[row]
        if lang not in texts and shared.chunks is not None:
            column = shared.chunks.texts(lang)
            texts[lang] = [] if column is None else column.to_pylist()
        known = texts.get(lang, [])
        found = [known[unit] or "" for unit in dict.fromkeys(units) if unit < len(known)]
        out.append(overlap(question, found) if found and question else None)
    return out
