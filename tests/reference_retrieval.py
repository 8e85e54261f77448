"""Measures of retrieval in plain Python: one trace, its case and the chunks, all as dicts.

`covers` of an item is the set of chunk ids that contain it, worked out by the caller. A measure
gives a number, "na", or "missing".
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
LATER = ("fused", "merged", "reranked", "selected", "packed")


def ids(items: Any) -> list[str]:
    return [one if isinstance(one, str) else one["id"] for one in items or []]


def cut(items: list[str], k: int) -> list[str]:
    return items[:k] if k else items


class Trace:
    """A trace with its case: `manifest` declares depths, `chunks` is by id."""

    def __init__(self, trace: Row, case: Row, chunks: dict[str, Row], manifest: Row) -> None:
        self.trace, self.case, self.chunks = trace, case, chunks
        self.wide, self.narrow = manifest.get("candidate_k", 0), manifest.get("context_k", 0)
        self.stages = {name: ids(items) for name, items in (trace.get("stages") or {}).items()}
        self.ranked = ids(trace.get("ranked"))
        self.required = [i for i in case["items"] if i["required"]]

    def share(self, units: list[str]) -> Any:
        if not self.required:
            return "na"
        hit = sum(bool(set(units) & i["covers"]) for i in self.required)
        return Fraction(hit, len(self.required))

    @property
    def channels(self) -> list[str]:
        return [n for n in self.stages if n not in LATER
                and not (n == "dense_exact" and "dense" in self.stages)]  # fmt: skip

    @property
    def candidates(self) -> list[str]:
        names = self.channels or list(self.stages)[:1]
        if not names:
            return cut(self.ranked, self.wide)
        return [u for n in names for u in cut(self.stages[n], self.wide)] + self.ranked

    @property
    def everything(self) -> list[str]:
        out = [u for n, own in self.stages.items() for u in own
               if not (n == "dense_exact" and "dense" in self.stages)]  # fmt: skip
        return out + self.ranked + ids(self.trace.get("context"))

    @property
    def selected(self) -> list[str]:
        return cut(self.ranked, self.narrow)

    def passing(self, test: Any) -> Any:
        if not self.selected:
            return "na"
        good = [u in self.chunks and test(self.chunks[u]) for u in self.selected]
        return Fraction(sum(good), len(good))


def opportunity(t: Trace) -> Any:
    found = t.share(t.candidates)
    return found if found == "na" else Fraction(found > 0)


def ahead(t: Trace) -> Any:
    helps = [i["covers"] for i in t.case["items"] if i["role"] in ("supporting", "conflicting")
             and i["relevance"] >= 1]  # fmt: skip
    if not helps:
        return "na"
    for at, unit in enumerate(t.ranked):
        if any(unit in covers for covers in helps):
            return at
    return len(t.ranked)


def displaced(t: Trace) -> Any:
    if "reranked" not in t.stages:
        return "missing"
    if not t.required:
        return "na"
    names = list(t.stages)
    before = "fused" if "fused" in names else names[names.index("reranked") - 1]
    first, then = set(cut(t.stages[before], t.narrow)), set(cut(t.stages["reranked"], t.narrow))
    out = [i for i in t.required if i["covers"] & first and not i["covers"] & then]
    return Fraction(len(out), len(t.required))


def token_budget(t: Trace, budget: int) -> Any:
    spent, prefix = 0, []
    for unit in t.ranked:
        length = t.chunks.get(unit, {}).get("n_tokens")
        if length is None:
            return "missing"
        spent += length
        if spent > budget:
            break
        prefix.append(unit)
    return t.share(prefix)


def concentration(t: Trace, by: str) -> Any:
    if not t.selected:
        return "na"
    sources = Counter(
        ("source", t.chunks[u][by]) if u in t.chunks and t.chunks[u][by] else ("unit", u)
        for u in t.selected
    )
    return Fraction(max(sources.values()), len(t.selected))


def forbidden(t: Trace) -> int:
    bad = set().union(*(i["covers"] for i in t.case["items"] if i["role"] == "forbidden"), set())
    return len(set(t.everything) & bad)


def deleted(t: Trace) -> int:
    return sum(bool(t.chunks.get(u, {}).get("deleted"))
               for u in {*t.everything, *ids(t.trace.get("citations"))})  # fmt: skip


def freshness(t: Trace) -> Any:
    day, topic = t.case["as_of"], t.case["topic"]

    def good(c: Row) -> bool:
        begins, ends = c["valid_from"] or date.min, c["valid_until"] or date.max
        return (day is None or begins <= day < ends) and topic in (None, c["topic"])

    found = t.passing(good)
    return "missing" if day is None and topic is None else found


def permission(t: Trace) -> Any:
    held = set(t.case["principals"] or ())
    closed = [u for u in t.selected if u in t.chunks and t.chunks[u]["acl"] is not None]
    if closed and t.case["principals"] is None:
        return "missing"  # nobody says who asks
    return t.passing(lambda c: c["acl"] is None or bool(held & set(c["acl"])))


def authority(t: Trace) -> Any:
    allowed = t.case["authorities"]
    return t.passing(lambda c: c["authority"] in allowed) if allowed else "na"


def packed(t: Trace) -> Any:
    if not t.required:
        return "na"

    def whole(item: Row) -> bool:
        for part in t.trace["context"] or []:
            chunk = t.chunks.get(part["id"], {"start": None, "end": None})
            low, high = part["start"] or 0, part["end"]
            inside = (
                item["start"] is not None
                and low <= item["start"]
                and (high is None or item["end"] <= high)
            )
            uncut = (low == 0 and high is None) or (
                chunk["end"] is not None
                and low <= (chunk["start"] or 0)
                and (high is None or high >= chunk["end"])
            )
            if part["id"] in item["covers"] and (inside or uncut):
                return True
        return False

    return Fraction(sum(whole(i) for i in t.required), len(t.required))


def agreement(a: list[str], b: list[str], k: int, p: float) -> dict[str, Any]:
    a, b = list(dict.fromkeys(a)), list(dict.fromkeys(b))
    a, b = cut(a, k), cut(b, k)
    if not a and not b:
        return dict.fromkeys(("jaccard", "share", "rbo"), "na")
    both, depth = set(a) & set(b), k or max(len(a), len(b))
    out: dict[str, Any] = {
        "jaccard": Fraction(len(both), len(set(a) | set(b))), "share": Fraction(len(both), depth),
        "rbo": 0.0,
    }  # fmt: skip
    if a and b:
        s, longest = sorted((len(a), len(b)))
        x = [len(set(a[:d]) & set(b[:d])) for d in range(longest + 1)]
        total = sum(x[d] * p**d / d for d in range(1, longest + 1))
        total += sum(x[s] * (d - s) * p**d / (s * d) for d in range(s + 1, longest + 1))
        rest = (x[longest] - x[s]) / longest + x[s] / s
        out["rbo"] = (1 - p) / p * total + rest * p**longest
    return out
