"""What did not join: cases on one side only, and ids that differ by next to nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore.columns import CaseCodes, Rows, as_text
from ragcore.measures.engine import Hits
from ragcore.measures.rankings import Labels, Rankings
from ragcore.results import Audit
from ragcore_kernels import ranking as kernel

NEAR_MISS_ROWS = 30_000  # rows looked at for near misses of documents; more is sampled
NAMED = 5  # ids named in a sentence


_BLANK = re.compile(r"[\s\u200b\ufeff]+")
_PADDING = re.compile(r"(?<!\d)0+(?=\d)")
_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("NFC/NFD", lambda name: unicodedata.normalize("NFC", name)),
    ("white space", lambda name: _BLANK.sub("", name)),
    ("zero padding", lambda name: _PADDING.sub("", name)),
    ("case", str.casefold),
)
"""What usually goes wrong with an id, and how to take it away."""


def fold(name: str) -> str:
    """An id without all that usually goes wrong."""
    if name.isascii() and name.isprintable() and " " not in name:  # nearly every id there is
        name = name.lower()
        return _STEPS[2][1](name) if "0" in name else name
    for _, step in _STEPS:
        name = step(name)
    return name


def difference(a: str, b: str) -> str:
    """How two ids with the same fold differ, in words."""
    return ", ".join(way for way, _ in _STEPS if _apart(a, b, way))


def _apart(a: str, b: str, way: str) -> bool:
    """Whether two ids still differ once everything but `way` is taken away."""
    for other, step in _STEPS:
        if other != way:
            a, b = step(a), step(b)
    return a != b


def near(ours: list[str], theirs: list[str]) -> list[tuple[str, str, str]]:
    """Pairs of unequal ids, one of each list, that are equal once folded."""
    exact = set(theirs)
    folded: dict[str, str] = {}
    for name in theirs:
        folded.setdefault(fold(name), name)
    out = []
    for name in ours:
        if name in exact:
            continue
        twin = folded.get(fold(name))
        if twin is not None:
            out.append((name, twin, difference(name, twin)))
    return out


def audit(
    rows: Rows, labels: Labels, rankings: Rankings, hits: Hits, codes: CaseCodes, policy: Any
) -> Audit:
    """Count and name what did not join, for one run.

    Parameters
    ----------
    policy : `topics`, `no_relevant` and `rel`, as `ragcore.score` resolved them.
    """
    names = codes.names()
    judged = rankings.label_of >= 0
    out = Audit()

    def cases(mask: Any) -> list[str]:
        return [names[c] for c in dict.fromkeys(rankings.case_of[mask].tolist())]

    has = ~hits.unlabelled
    kept = judged & ~rankings.absent if policy["topics"] == "common" else judged
    out.missing_in_run = cases(rankings.absent)
    out.not_judged = cases(~judged)
    out.no_relevant = cases(kept & has & (hits.top < max(int(policy["rel"]), 0)))
    out.no_judgements = cases(kept & ~has)
    found_cases = set(rankings.case_of[judged & ~rankings.absent].tolist())
    solid = int(hits.stats[judged, kernel.N_JUDGED].sum())
    got = int(hits.stats[judged, kernel.N_JUDGED_RET].sum())
    out.counts = {
        "rankings": len(rankings) - int(rankings.absent.sum()),
        "cases judged": len(set(labels.case_of.tolist())),
        "cases scored": len(found_cases),
        "cases missing in the run": len(out.missing_in_run),
        "cases not judged": len(out.not_judged),
        "cases without a relevant document": len(out.no_relevant),
        "variants missing in the run": _variants_missing(labels, rankings, found_cases),
        "rows": rows.n_rows,
        "judged documents": solid,
        "judged documents not retrieved": solid - got,
        "repeated judgements": _once_per_group(hits, kernel.COLLAPSED),
        "rows left out": int(hits.stats[:, kernel.DROPPED].sum()),
        "order conflicts": _order_conflicts(rows, hits),
        **rows.notes,
        **{f"qrels: {name}": count for name, count in labels.rows.notes.items()},
    }
    out.near_misses = near(out.not_judged, out.missing_in_run)
    documents, looked = _near_documents(rows, labels, rankings, hits)
    out.near_misses += documents
    out.near_missed = (looked, int(judged.sum()))
    out.warnings = _sentences(out, policy)
    if labels.items is not None:
        out.counts |= labels.items.notes
        out.warnings += labels.items.sentences
    return out


def _variants_missing(labels: Labels, rankings: Rankings, found: set[int]) -> int:
    """Cases in one language that the run lacks, though it has the case in another."""
    met = set(rankings.label_of[~rankings.absent].tolist())
    groups = enumerate(labels.case_of.tolist())
    return sum(1 for group, case in groups if case in found and group not in met)


def _once_per_group(hits: Hits, column: int) -> int:
    groups, where = np.unique(hits.rankings.label_of, return_index=True)
    return int(hits.stats[where[groups >= 0], column].sum())


def _order_conflicts(rows: Rows, hits: Hits) -> int:
    """Nested lists whose recorded scores rise along them; flat rows may stand in any order."""
    if rows.order == kernel.BY_SCORE:
        return 0
    return int((hits.stats[:, kernel.RISES] > 0).sum())


def _near_documents(
    rows: Rows, labels: Labels, rankings: Rankings, hits: Hits
) -> tuple[list[tuple[str, str, str]], int]:
    """Near misses between retrieved and judged documents, worst-joined rankings first."""
    judged = np.flatnonzero((rankings.label_of >= 0) & ~rankings.absent)
    lost = hits.stats[judged, kernel.N_JUDGED] - hits.stats[judged, kernel.N_JUDGED_RET]
    judged = judged[lost > 0]
    order = judged[np.argsort(hits.stats[judged, kernel.N_JUDGED_RET], kind="stable")]
    out: dict[tuple[str, str], str] = {}
    budget, looked = NEAR_MISS_ROWS, 0
    for t in order.tolist():
        if budget <= 0:
            break
        retrieved = _ids(rows, rankings.segments, rankings.offsets[t : t + 2])
        c = int(rankings.label_of[t])
        wanted = _ids(labels.rows, labels.segments, labels.offsets[c : c + 2])
        budget -= len(retrieved) + len(wanted)
        looked += 1
        have, known = set(retrieved), set(wanted)
        unjudged = [name for name in retrieved if name not in known]
        for one, twin, how in near(unjudged, [name for name in wanted if name not in have]):
            out[one, twin] = how
    return [(one, twin, how) for (one, twin), how in out.items()], looked


def _ids(rows: Rows, segments: Any, ends: Any) -> list[str]:
    out: list[str] = []
    first, last = ends.tolist()
    for piece, start, count in segments[first:last].tolist():
        out += [as_text(v) for v in rows.ids.arrays[piece].slice(start, count).to_pylist()]
    return out


def some(names: list[str]) -> str:
    """The first few of some names, and how many more there are."""
    shown = ", ".join(repr(n) for n in names[:NAMED])
    return shown + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _sentences(out: Audit, policy: dict[str, str]) -> list[str]:
    said = []
    if out.missing_in_run:
        fate = "left out (--topics common)" if policy["topics"] == "common" else "scored as empty"
        said.append(
            f"{len(out.missing_in_run)} judged case(s) missing in the run, {fate}: "
            f"{some(out.missing_in_run)}"
        )
    if out.not_judged:
        said.append(
            f"{len(out.not_judged)} case(s) of the run not judged, left out: {some(out.not_judged)}"
        )
    if out.no_relevant:
        fate = "count 0" if policy["no_relevant"] == "zero" else "na"
        said.append(
            f"{len(out.no_relevant)} case(s) without a relevant document, {fate} "
            f"(--no-relevant {policy['no_relevant']}): {some(out.no_relevant)}"
        )
    for count, what in (
        ("variants missing in the run", "case(s) in one language missing in the run, left out"),
        ("repeated judgements", "judgement(s) only repeat another, counted once"),
        ("rows left out", "row(s) left out (repeated documents, or a case's own)"),
        ("order conflicts", "list(s) whose scores rise along the recorded order, which is kept"),
    ):
        if out.counts[count]:
            said.append(f"{out.counts[count]} {what}")
    known = {
        "comment lines", "lines with extra fields", "unreadable ranks", "other run tags",
        "rank conflicts", "ranks not compared", "lines that are not UTF-8", "header line",
        "blank lines", "byte order mark", "query ids that begin with #",
    }  # fmt: skip
    for name, number in out.counts.items():
        if name.removeprefix("qrels: ") in known:
            said.append(f"{name}: {number}")
    if out.near_misses:
        pairs = "; ".join(f"{a!r} and {b!r} ({how})" for a, b, how in out.near_misses[:NAMED])
        more = len(out.near_misses) - NAMED
        said.append(
            f"{len(out.near_misses)} unmatched id(s) would equal a judged one but for their form: "
            f"{pairs}" + (f"; and {more} more" if more > 0 else "")
        )
        looked, all_of_them = out.near_missed
        if looked < all_of_them:
            said.append(f"near misses were looked for in {looked} of {all_of_them} rankings")
    return said
