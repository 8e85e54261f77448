"""Suites for people: the list, one suite, its check, and the report of a run."""

from __future__ import annotations

import math
from typing import Any

from ragcore.report.table import aligned, decimal, markdown, plain, render

Block = tuple[str, list[str], list[list[str]]]


def page(blocks: list[Block], form: str) -> bytes:
    """Blocks as a page: each a title, and a table or, without a head, lines."""
    lines: list[str] = []
    for title, head, body in blocks:
        if title:
            lines += ["", f"## {title}" if form == "md" else title]
            lines += [""] if form == "md" else []
        if head and body:
            lines += markdown(head, body) if form == "md" else aligned(head, body)
        elif not head:
            lines += [f"- {line[0]}" if form == "md" else f"  {line[0]}" for line in body]
    begin = 1 if lines and not lines[0] else 0
    return "".join(f"{line.rstrip()}\n" for line in lines[begin:]).encode("utf-8", "replace")


def listing(entries: list[Any], where: dict[str, str]) -> list[Block]:
    """All suites, a line each; `where` says by name whether their data is there."""
    head = ["name", "kind", "version", "licence", "ladder", "data"]
    body = [
        [one.name, one.kind, _brief(one.settings.get("version", "")),
         _brief(one.settings.get("licence", "")), ", ".join(one.strategies) or "recorded runs",
         where[one.name]]
        for one in entries
    ]  # fmt: skip
    return [("", head, [[plain(cell) for cell in line] for line in body])]


def _brief(text: Any) -> str:
    """What stands before the first comma or semicolon; `show` has the rest."""
    return str(text).replace(",", ";").partition(";")[0]


def files(entry: Any) -> list[Block]:
    """Files that a suite is pinned to, and where the official ones come from."""
    head = ["file", "bytes", "rows", "sha256"]
    body = [
        [plain(name), f"{one['bytes']:,}" if "bytes" in one else "",
         f"{one['rows']:,}" if "rows" in one else "", one["sha256"]]
        for name, one in entry.settings.get("files", {}).items()
    ]  # fmt: skip
    official = [
        [one["file"], f"{one['bytes']:,}", one["sha256"], plain(one["url"])]
        for one in entry.settings.get("official", [])
    ]
    blocks: list[Block] = [("Files", head, body)] if body else []
    if official:
        blocks.append(("Official distribution", ["file", "bytes", "sha256", "url"], official))
    return blocks


def about(entry: Any, form: str = "") -> Block:
    """What a suite is, and what it cannot show."""
    said = entry.settings
    title = str(said.get("title", entry.name))
    lines = [
        f"{entry.name} {said.get('version', '')}: {entry.kind or 'kind not stated'}",
        f"licence {said['licence']}" if said.get("licence") else "",
        f"source {said['source']}" if said.get("source") else "",
        f"cite {said['citation']}" if said.get("citation") else "",
        f"what is scored: {said['subset']}" if said.get("subset") else "",
        f"data: {form}" if form else "",
        *(f"cannot show: {limit}" for limit in entry.limits),
    ]
    return (title, [], [[plain(line)] for line in lines if line])


def facts(found: Any) -> list[Block]:
    """What a suite holds, counted, with its query types."""
    langs = ", ".join(f"{n} {lang or 'without a language'}" for lang, n in found.langs.items())
    splits = ", ".join(f"{n} {split or 'without a split'}" for split, n in found.splits.items())
    can = found.answerable
    lines = [
        f"{found.n_cases} cases in {found.n_rows} rows ({langs})",
        f"splits: {splits}",
        f"answerable: {can['true']} yes, {can['false']} no, {can['']} not said",
        f"corpus: {found.n_chunks:,} chunks of {found.n_documents:,} documents",
        f"labels: {found.n_items:,} items of evidence, {found.n_stale} stale, "
        f"{found.n_unplaced} in no chunk",
    ]
    if found.n_reviewed is not None:
        origin = ", ".join(f"{n} of origin {name}" for name, n in found.origins.items())
        lines.append(f"rows: {origin}; {found.n_reviewed} reviewed by a person")
    head = ["type", "cases", "by split", "words shared with evidence"]
    body = [
        [plain(name), str(kind.cases),
         ", ".join(f"{n} {split or 'none'}" for split, n in sorted(kind.by_split.items())),
         "" if kind.overlap is None else f"{kind.overlap:.3f} ({kind.shared}/{kind.words})"]
        for name, kind in found.kinds.items()
    ]  # fmt: skip
    return [("What it holds", [], [[line] for line in lines]), ("Query types", head, body)]


def checks(found: list[Any]) -> Block:
    """Every finding of a check."""
    body = [["ok" if one.holds else "WRONG", one.what, plain(one.found)] for one in found]
    return ("", ["", "what", "found"], body)


def run(
    found: Any, pivots: dict[str, list[Any]], said: list[str], level: float, form: str
) -> bytes:
    """The report of a suite that was run.

    Parameters
    ----------
    found : a `SuiteRun`.
    pivots : the primary measure by query type and other columns, `reading.pivots`.
    said : the ladder in words.
    """
    head = page([about(found.entry, found.form)], form)
    parts = [head]
    if found.scores is not None:
        parts.append(_titled("Scores", form) + render(found.scores.rows((), level), form, level))
    blocks = [_costs(found), _rooms(found)]
    blocks += [_types(found, name, kinds) for name, kinds in pivots.items()]
    blocks.append(("In words", [], [[plain(s)] for s in said]))
    notes = [*found.notes, *(f"{r.name}: {n}" for r in found.rungs for n in r.notes)]
    notes = list(dict.fromkeys(plain(note) for note in notes))
    blocks += [("Time", [], [[_times(found.times)]]), ("Notes", [], [[note] for note in notes])]
    parts.append(b"\n" + page([block for block in blocks if block[2]], form))
    return b"".join(parts)


def _titled(title: str, form: str) -> bytes:
    return (f"\n## {title}\n\n" if form == "md" else f"\n{title}\n").encode()


def _costs(found: Any) -> Block:
    """What each rung costs, beside what a random ranking would find."""
    if not any(one.strategy for one in found.rungs):
        return ("", [], [])
    unit = str(found.suite.settings.get("budget_unit") or "tokens")
    k = found.cutoff
    head = ["run", "scope", "p50 ms", "p95 ms", "index MB", f"context {unit}", "pool",
            f"random R@{k}", ""]  # fmt: skip
    body = []
    for one in found.rungs:
        if one.skipped:
            body.append([one.name, one.scope.name, *["-"] * 6, "not evaluated"])
            continue
        body.append([
            one.name, one.scope.name or "whole corpus", _ms(one.p50), _ms(one.p95),
            f"{one.size / 1e6:.2f}", _whole(one.tokens), _whole(one.pool),
            decimal(one.random(k)), "",
        ])  # fmt: skip
    return ("What it costs", head, body)


def _rooms(found: Any) -> Block:
    """What each run leaves open on every measure that has a best value."""
    names = list(dict.fromkeys(name for one in found.rungs for name in one.room))
    body = [
        [one.name, *(str(one.room[name]) if name in one.room else "" for name in names)]
        for one in found.rungs if one.room
    ]  # fmt: skip
    return ("What each run leaves open", ["run", *names], body)


def _types(found: Any, column: str, kinds: list[Any]) -> Block:
    """The primary measure by the values of a column."""
    names = [one.name for one in found.scores.runs]
    body = [
        [plain(one.name), str(max(one.n)), *(decimal(mean) for mean in one.means),
         ", ".join(one.best)]
        for one in kinds if max(one.n)
    ]  # fmt: skip
    none = [plain(one.name) for one in kinds if not max(one.n)]
    title = f"{found.scores.measures[0]} by {column}"
    title += f" (no value for {', '.join(none)})" if none else ""
    return (title, [column, "n", *names, "best"], body)


def _times(times: dict[str, float]) -> str:
    return ", ".join(f"{step} {spent:.2f} s" for step, spent in times.items())


def _ms(value: float) -> str:
    return "-" if math.isnan(value) else f"{value / 1e3:.3g}"


def _whole(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"
