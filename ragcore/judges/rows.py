"""A review as one table, a row a statistic: what machines read of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.judges.queue import evidence_of

REVIEW = pa.schema(
    [
        ("section", pa.string()), ("relation", pa.string()), ("run", pa.string()),
        ("judge", pa.string()), ("against", pa.string()), ("level", pa.string()),
        ("measure", pa.string()), ("value", pa.float64()), ("numerator", pa.float64()),
        ("denominator", pa.float64()), ("ci_low", pa.float64()), ("ci_high", pa.float64()),
        ("ci_method", pa.string()), ("n", pa.int64()), ("case_id", pa.string()),
        ("lang", pa.string()), ("repeat", pa.int16()), ("claim", pa.int16()), ("note", pa.string()),
    ]
)  # fmt: skip
"""`section`: judge, coverage, agreement, quality, estimate, sensitivity, flip, effect, audit,
statement.
`judge` and `against` are the two that are compared, or a judge and the rung it is held against;
`run` is null for all runs together and for verdicts on cases themselves. Null where there is no
number."""

Row = dict[str, Any]


def table_of(found: Any) -> pa.Table:
    """A `Review` as a table of `REVIEW`."""
    rows = [
        *_cards(found), *_coverage(found), *_agreement(found), *_quality(found),
        *_estimates(found), *_sensitivity(found), *_audit(found),
        *({"section": "statement", "note": text} for text in found.statements),
    ]  # fmt: skip
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
    return pa.Table.from_pylist(rows, schema=REVIEW)


def _cards(found: Any) -> Iterator[Row]:
    for card in found.cards:
        for name in (
            "n_verdicts", "n_items", "n_errors", "n_unclear", "n_conflicts", "n_adjudications",
            "prompts", "rubrics",
        ):  # fmt: skip
            value = float(getattr(card, name))
            yield {
                "section": "judge", "judge": card.name, "measure": name.removeprefix("n_"),
                "value": value, "note": ", ".join(card.rungs),
            }  # fmt: skip


def _coverage(found: Any) -> Iterator[Row]:
    for one in found.coverage:
        counts = {
            "decided": one.decided, **{f"decided:{rung}": n for rung, n in one.rungs.items() if n},
            "adjudicated": one.adjudicated, "disputed": one.disputed,
            "contradictory": one.contradictory, "below_rung": one.below_rung,
            "errors": one.errors,
        }  # fmt: skip
        base = {
            "section": "coverage", "relation": one.relation, "run": one.run or None,
            "level": "all runs" if one.run == "" else "run", "n": one.n_cases,
        }  # fmt: skip
        for name, count in counts.items():
            yield base | _share(name, count, one.n_items)
        bounds = one.bounds or (None, None)
        yield base | _share("share_yes", one.verdicts["yes"], one.decided) | {
            "ci_low": bounds[0], "ci_high": bounds[1], "ci_method": "bounds over open items",
        }  # fmt: skip
        for verdict in schema.VERDICTS[:4]:
            yield base | _share(f"verdict:{verdict}", one.verdicts[verdict], one.decided)


def _share(name: str, over: float, under: float) -> Row:
    return {
        "measure": name, "value": over / under if under else None, "numerator": float(over),
        "denominator": float(under),
    }  # fmt: skip


def _agreement(found: Any) -> Iterator[Row]:
    for one in found.agreement:
        pair = len(one.judges) == 2
        base = {
            "section": "agreement", "relation": one.relation,
            "judge": one.judges[0] if pair else None, "against": one.judges[1] if pair else None,
            "level": "pair" if pair else f"all {len(one.judges)}", "n": one.n_items,
            "note": one.note or None,
        }  # fmt: skip
        for name in ("observed", "kappa", "weighted_kappa", "alpha", "ordinal_alpha", "ac1"):
            yield base | {"measure": name, "value": getattr(one, name)}
        for verdict, share in zip(one.categories, one.prevalence, strict=True):
            yield base | {"measure": f"prevalence:{verdict}", "value": share}
        yield base | {"measure": "left_out", "value": float(one.n_left_out)}


def _quality(found: Any) -> Iterator[Row]:
    for one in found.quality:
        base = {
            "section": "quality", "relation": one.relation, "judge": one.judge,
            "against": one.against, "level": one.level, "n": one.counts.n,
            "note": f"positive: {one.positive}",
        }  # fmt: skip
        for share in one.shares:
            yield base | _share(share.name, share.over, share.under) | {
                "ci_low": share.low, "ci_high": share.high, "ci_method": share.method,
            }  # fmt: skip
        counts = one.counts
        yield base | _share("prevalence", counts.tp + counts.fn, counts.n)
        for name in ("tp", "fp", "fn", "tn", "n_missing"):
            value = float(getattr(counts, name))
            yield base | {"measure": name.removeprefix("n_"), "value": value}


def _estimates(found: Any) -> Iterator[Row]:
    for one in found.estimates:
        base = {
            "section": "estimate", "relation": one.relation, "run": one.run, "judge": one.judge,
            "against": one.against, "n": one.n_labelled, "note": one.warning or None,
        }  # fmt: skip
        yield base | {"measure": "judge alone", "value": one.judge_mean}
        for name, mean in one.means.items():
            yield base | {
                "measure": name, "value": mean.mean, "ci_low": mean.low, "ci_high": mean.high,
                "ci_method": f"normal({found.level:.10g})",
                "note": mean.reason or one.warning or None,
            }  # fmt: skip
            yield base | {"measure": f"{name} weight", "value": mean.lam}
        yield base | {"measure": "unlabelled", "value": float(one.n_unlabelled)}
        yield base | {"measure": "unmatched", "value": float(one.n_unmatched)}


def _sensitivity(found: Any) -> Iterator[Row]:
    for one in found.sensitivity:
        base = {
            "section": "sensitivity", "relation": one.relation, "run": one.run,
            "judge": one.before, "against": one.after, "n": one.effect.n,
        }  # fmt: skip
        yield base | _share("flips", one.n_flips, one.n_items)
        for (before, after), count in sorted(one.flips.items()):
            yield base | _share(f"{before} -> {after}", count, one.n_items)
        for name in ("n_open", "n_before", "n_after"):
            yield base | {"measure": name.removeprefix("n_"), "value": float(getattr(one, name))}
        effect = one.effect
        yield base | {"measure": "share_yes before", "value": effect.before}
        yield base | {"measure": "share_yes after", "value": effect.after}
        yield base | {
            "measure": "share_yes difference", "value": effect.delta, "ci_low": effect.low,
            "ci_high": effect.high, "ci_method": effect.method, "note": effect.reason or None,
        }  # fmt: skip
        yield base | {
            "measure": "p_value", "value": effect.p_value, "ci_method": effect.p_method,
        }  # fmt: skip
        yield from flips(found, one)
    for one in found.effects:
        yield from _effect(one)


def _effect(one: Any) -> Iterator[Row]:
    base = {
        "section": "effect", "run": one.run, "judge": one.before, "against": one.after,
        "n": one.paired.n,
    }  # fmt: skip
    yield base | {"measure": f"{one.measure} before", "value": one.paired.before}
    yield base | {"measure": f"{one.measure} after", "value": one.paired.after}
    yield base | {
        "measure": f"{one.measure} difference", "value": one.paired.delta,
        "ci_low": one.paired.low, "ci_high": one.paired.high, "ci_method": one.paired.method,
        "note": one.paired.reason or None,
    }  # fmt: skip


def flips(found: Any, one: Any) -> Iterator[Row]:
    """The items on which two judges differ, a row each, by case, language and claim."""
    items, own = found.items, one.flipped
    names = {
        what: [None if c < 0 else words[c] for c in codes[own].tolist()]
        for what, codes, words in (
            ("case_id", items.case, items.judgments.names["case"].to_pylist()),
            ("lang", items.lang, items.judgments.names["lang"].to_pylist()),
        )
    }  # fmt: skip
    numbers = {
        what: [None if v < 0 else v for v in values[own].tolist()]
        for what, values in (("repeat", items.repeat), ("claim", items.claim))
    }
    chunks = [", ".join(ids) or None for ids in evidence_of(items, own).to_pylist()]
    said = [[schema.VERDICTS[v] for v in side] for side in one.said.tolist()]
    rows = [
        {
            "section": "flip", "relation": one.relation, "run": one.run, "judge": one.before,
            "against": one.after, "measure": f"{before} -> {after}", "note": note,
            "case_id": case, "lang": lang, "repeat": repeat, "claim": claim,
        }
        for before, after, note, case, lang, repeat, claim in zip(
            *said, chunks, *names.values(), *numbers.values(), strict=True
        )
    ]  # fmt: skip
    yield from sorted(
        rows,
        key=lambda r: (
            r["case_id"], r["lang"] or "", r["repeat"] or 0, r["claim"] or 0, r["note"] or "",
        ),
    )  # fmt: skip


def _audit(found: Any) -> Iterator[Row]:
    if found.audit is None:
        return
    for stratum, chosen, available in found.audit.shares:
        yield {"section": "audit", "level": stratum, **_share("chosen", chosen, available)}
