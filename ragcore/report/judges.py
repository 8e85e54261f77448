"""A review of judges for people: section by section, what is decided first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ragcore.report.table import aligned, decimal, markdown, plain

MOST_ROWS = 40
"""Rows of a section that are shown; machine formats have them all."""


def page(found: Any, form: str) -> bytes:
    """A whole review.

    Parameters
    ----------
    found : a `Review`.
    form : table or md.
    """
    render = markdown if form == "md" else aligned
    lines: list[str] = []
    for title, section in (
        ("judges", _cards), ("coverage, by rung", _coverage), ("agreement", _agreement),
        ("quality against {against} or above", _quality),
        ("share of yes, corrected by labels of {against} or above", _estimates),
        ("sensitivity to the judge", _sensitivity), ("flips", _flips),
        ("measures under either judge", _effects), ("audit", _audit),
    ):  # fmt: skip
        head, body = section(found)
        if body:
            heading = title.format(against=found.against)
            lines += [f"## {heading}" if form == "md" else f"{heading}:", ""]
            lines += render(head, body[:MOST_ROWS])
            if len(body) > MOST_ROWS:
                lines.append(f"... and {len(body) - MOST_ROWS} more rows: -f jsonl has them")
            lines.append("")
    for text in found.statements:
        lines += [f"gate statement: {plain(text)}", ""]
    lines += [f"{len(found.open)} items wait for people: see --queue FILE"] * bool(len(found.open))
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line.rstrip()}\n" for line in lines).encode("utf-8", "backslashreplace")


Section = tuple[list[str], list[list[str]]]


def _cards(found: Any) -> Section:
    head = ["judge", "rung", "verdicts", "items", "errors", "unclear", "own conflicts",
            "adjudications", "prompts", "rubrics"]  # fmt: skip
    return head, [
        [plain(c.name), " ".join(c.rungs), *(str(n) for n in (
            c.n_verdicts, c.n_items, c.n_errors, c.n_unclear, c.n_conflicts, c.n_adjudications,
            c.prompts, c.rubrics,
        ))] for c in found.cards
    ]  # fmt: skip


def _coverage(found: Any) -> Section:
    head = ["relation", "run", "decided", "on rung", "disputed", "below rung", "errors",
            "share yes", "open items allow"]  # fmt: skip
    body = []
    for one in found.coverage:
        rungs = ", ".join(f"{rung} {n}" for rung, n in one.rungs.items() if n)
        if one.adjudicated:
            rungs += f" ({one.adjudicated} adjudicated)"
        disputed = str(one.disputed)
        if one.contradictory:
            disputed += f" ({one.contradictory} adjudicated twice)"
        low, high = one.bounds or (math.nan, math.nan)
        body.append(
            [one.relation, _run(one.run), f"{one.decided}/{one.n_items}", rungs, disputed,
             str(one.below_rung), str(one.errors), decimal(one.share_yes),
             f"[{low:.4f}, {high:.4f}]"]
        )  # fmt: skip
    return head, body


def _run(run: str | None) -> str:
    return "(the case)" if run is None else plain(run) or "all"


def _agreement(found: Any) -> Section:
    head = ["relation", "judges", "n", "left out", "observed", "kappa", "alpha", "AC1",
            "weighted kappa", "ordinal alpha", "prevalence", "note"]  # fmt: skip
    body = []
    for one in found.agreement:
        names = " / ".join(one.judges) if len(one.judges) < 4 else f"all {len(one.judges)}"
        shares = ", ".join(
            f"{word} {share:.3f}"
            for word, share in zip(one.categories, one.prevalence, strict=True)
        )
        body.append(
            [one.relation, plain(names), str(one.n_items), str(one.n_left_out),
             *(decimal(v) for v in (one.observed, one.kappa, one.alpha, one.ac1,
                                   one.weighted_kappa, one.ordinal_alpha)),
             shares, one.note]
        )  # fmt: skip
    return _without_empty(head, body)


def _quality(found: Any) -> Section:
    head = ["relation", "judge", "of", "positive", "n", "no opinion", "tp", "fp", "fn", "tn",
            "precision", "recall", "specificity", "F1", "prevalence"]  # fmt: skip
    body = []
    for one in found.quality:
        c = one.counts
        shares = [_with_interval(s.value, s.low, s.high) for s in one.shares]
        body.append(
            [one.relation, plain(one.judge), one.level, one.positive, str(c.n), str(c.n_missing),
             *(str(n) for n in (c.tp, c.fp, c.fn, c.tn)), *shares, decimal(c.prevalence)]
        )  # fmt: skip
    return head, body


def _estimates(found: Any) -> Section:
    head = ["relation", "run", "judge", "n", "without label", "judge alone", "classical", "PPI",
            "PPI++", "weight", "note"]  # fmt: skip
    body = []
    for one in found.estimates:
        means = [_with_interval(m.mean, m.low, m.high) for m in one.means.values()]
        body.append(
            [one.relation, _run(one.run), plain(one.judge), str(one.n_labelled),
             str(one.n_unlabelled), decimal(one.judge_mean), *means,
             decimal(one.means["ppi++"].lam), one.warning]
        )  # fmt: skip
    return head, body


def _sensitivity(found: Any) -> Section:
    head = ["relation", "run", "judges", "items", "flips", "which", "open", "before", "after",
            "delta", "interval", "p", "cases"]  # fmt: skip
    body = []
    for one in found.sensitivity:
        which = ", ".join(f"{a} -> {b} {n}" for (a, b), n in sorted(one.flips.items()))
        e = one.effect
        interval = "" if e.low is None else f"[{e.low + 0.0:.4f}, {e.high + 0.0:.4f}] {e.method}"
        p = "" if e.p_value is None else f"{e.p_value:.4f}"
        body.append(
            [one.relation, _run(one.run), plain(f"{one.before} / {one.after}"), str(one.n_items),
             str(one.n_flips), which, str(one.n_open), decimal(e.before), decimal(e.after),
             decimal(e.delta), interval, p, str(e.n)]
        )  # fmt: skip
    return head, body


def _flips(found: Any) -> Section:
    head = ["case", "lang", "run", "relation", "claim", "verdicts", "chunks"]
    body = []
    for one in found.sensitivity:
        for row in found.flips(one):
            claim = "" if row["claim"] is None else str(row["claim"])
            body.append(
                [plain(row["case_id"]), row["lang"] or "", _run(row["run"]), row["relation"],
                 claim, row["measure"], plain(row["note"] or "")]
            )  # fmt: skip
    return head, body


def _effects(found: Any) -> Section:
    head = ["measure", "run", "judges", "before", "after", "delta", "interval", "p", "cases",
            "unpaired"]  # fmt: skip
    body = []
    for one in found.effects:
        e = one.paired
        interval = "" if e.low is None else f"[{e.low + 0.0:.4f}, {e.high + 0.0:.4f}] {e.method}"
        p = "" if e.p_value is None else f"{e.p_value:.4f}"
        body.append(
            [plain(one.measure), plain(one.run), plain(f"{one.before} / {one.after}"),
             decimal(e.before), decimal(e.after), decimal(e.delta), interval, p, str(e.n),
             str(e.unpaired)]
        )  # fmt: skip
    return head, body


def _audit(found: Any) -> Section:
    if found.audit is None:
        return [], []
    body = [[name, f"{a}/{b}"] for name, a, b in found.audit.shares]
    return ["stratum", "cases to audit"], body


def _without_empty(head: list[str], body: list[list[str]]) -> Section:
    """The columns that have something in some row."""
    shown: list[int] = [i for i in range(len(head)) if any(r[i] not in ("", "-") for r in body)]
    take: Callable[[list[str]], list[str]] = lambda row: [row[i] for i in shown]  # noqa: E731
    return take(head), [take(row) for row in body]


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    if low is None or high is None or math.isnan(low):
        return decimal(value)
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"
