"""An audit for people: recall by slice and ef with verdicts, losses, what cannot be reached."""

from __future__ import annotations

from typing import Any

from ragcore.report.table import aligned, decimal, markdown, plain

MOST_ROWS = 40
"""Rows of slices that are shown for an ef; the worst ones first. Machine formats have them all."""


def page(report: Any, form: str) -> bytes:
    """A whole audit.

    Parameters
    ----------
    report : a `Report`.
    form : table or md.
    """
    lines: list[str] = []
    for k, audit in report.audits.items():
        lines += [*_slices(audit, form), ""]
        lines += [_recalls(one) for one in report.recalls if one.k == k]
        lines += [*_conclusion(k, audit), ""]
    lines += _rest(report)
    return "".join(f"{line.rstrip()}\n" for line in lines).encode("utf-8", "backslashreplace")


def _slices(audit: Any, form: str) -> list[str]:
    first = audit.rows[0]
    timed = any(row.queries_per_s is not None for row in audit.rows)
    recorded = audit.efs == [0]
    head = [] if recorded else ["ef"]
    head += ["slice", f"{first.recall} recall@{first.k}", "n/d", f"low {100 * first.level:.10g}%"]
    head += ["least", "below", "short", "not findable", "ties"]
    head += ["queries/s"] * timed + ["verdict"]
    body = []
    for ef in audit.efs:
        every, *others = audit.at(ef)
        others.sort(key=lambda row: (row.mean is None, row.mean or 0.0))
        for row in [every, *others[:MOST_ROWS]]:
            line = [] if recorded else [str(ef)]
            line += [plain(row.slice), decimal(row.mean), f"{row.hits}/{row.wanted}"]
            line += [decimal(row.low), decimal(row.minimum), f"{row.n_below}/{row.n_queries}"]
            line += [str(row.short_lists), str(row.not_findable)]
            line += ["-" if row.ties_at_k is None else str(row.ties_at_k)]
            speed = f"{row.queries_per_s:,.0f}" if row.queries_per_s is not None else ""
            line += [speed if row is every else ""] * timed
            said = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
            body.append([*line, said])
        if len(others) > MOST_ROWS:
            rest = [""] * (len(head) - 1)
            body.append([*rest, f"{len(others) - MOST_ROWS} better slices not shown"])
    return markdown(head, body) if form == "md" else aligned(head, body)


def _recalls(one: Any) -> str:
    at = f"ef {one.ef}: " if one.ef else ""
    recalls = f"by id {decimal(one.id)}, by distance {decimal(one.distance)}"
    return (
        f"{at}recall@{one.k} {recalls}, of distinct vectors {decimal(one.distinct)}; "
        f"mean score gap {one.gap:.3g}; repeated ids {one.duplicates}"
    )


def _conclusion(k: int, audit: Any) -> list[str]:
    last = max(audit.efs)
    worst = audit.worst(last)
    at = "" if audit.efs == [0] else f" at ef {last}"
    lines = [f"worst slice{at}: {plain(worst.slice)}, {decimal(worst.mean)}"]
    best = audit.smallest_ef
    if audit.efs == [0]:
        verdict = audit.verdict(0)
        lines.append(f"verdict, of the worst slice: {verdict}")
    elif best is None:
        lines.append(f"verdict: no ef holds {audit.target:.10g} in every slice for k = {k}")
    else:
        row = audit.worst(best)
        lines.append(
            f"verdict: pass; ef {best} is the smallest that holds {audit.target:.10g} in every "
            f"slice (worst {plain(row.slice)}: {decimal(row.mean)}, lower bound {decimal(row.low)})"
        )
    return lines


def _rest(report: Any) -> list[str]:
    lines = []
    if report.selves is not None and report.selves.n:
        found = report.selves
        lost = found.unreachable.size
        lines.append(
            f"self-recall: {found.itself + found.equal}/{found.n} nodes find themselves"
            + (f" ({found.equal} of them an equal vector)" if found.equal else "")
            + (f"; {lost} unreachable, rows {_some(found.unreachable)}" if lost else "")
        )
    if report.n_copies:
        lines.append(f"duplicates: {report.n_copies} vectors equal another one")
    for loss in report.losses:
        lines.append(_loss(loss))
    return lines


def _loss(loss: Any) -> str:
    one = loss.paired
    text = f"{loss.measure} at ef {loss.ef}, k {loss.k}: exact {decimal(one.before)}, HNSW "
    text += f"{decimal(one.after)}"
    if one.delta is not None:
        text += f", difference {one.delta:+.4f}"
    if one.low is not None:
        text += f" [{one.low + 0.0:.4f}, {one.high + 0.0:.4f}] {one.method}"
    return f"{text}, n = {one.n}"


def _some(rows: Any) -> str:
    shown = ", ".join(map(str, rows[:5].tolist()))
    return shown if len(rows) <= 5 else f"{shown}, ..."
