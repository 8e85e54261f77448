"""Citations in plain Python: the chain of one pair, and every measure of one answer.

A check is True, False, or None where nobody can tell; a value is a fraction, or the word of its
state. Verdicts are looked up as ``verdicts[relation, claim, frozenset of ids]``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Verdicts = dict[tuple[str, int | None, frozenset[str]], str]
STAGES = (
    "well_formed", "supplied", "version", "quote", "accessible", "in_scope", "span_inside",
)  # fmt: skip
WEIGHT = {
    "yes": Fraction(1),
    "partial": Fraction(1, 2),
    "no": Fraction(0),
    "contradicts": Fraction(0),
}
MISSING, NA = "missing", "na"
_SERVES = ("supporting", "conflicting", None)  # no role is the usual one


def both(*checks: bool | None) -> bool | None:
    """A failed check decides; then an unknown one leaves it open."""
    if False in checks:
        return False
    return None if None in checks else True


class Answer:
    """One trace against its case and the suite's chunks."""

    def __init__(
        self, trace: Row, case: Row, chunks: dict[str, Row], verdicts: Verdicts | None = None
    ) -> None:
        self.trace, self.case, self.chunks = trace, case, chunks
        self.verdicts = verdicts or {}
        self.claims = trace.get("claims") or []
        self.citations = trace["citations"]
        self.pairs = [self.chain(c) for c in self.citations]

    # The chain

    def chain(self, c: Row) -> dict[str, bool | None]:
        """What every stage says of a citation."""
        unit = self.chunks.get(c["id"])
        found = {
            "well_formed": self.formed(c), "supplied": self.supplied(c),
            "version": self.version(c, unit), "quote": self.quote(c, unit),
            "accessible": self.accessible(unit), "in_scope": self.scope(unit),
            "span_inside": self.inside(c, unit),
        }  # fmt: skip
        found["declared"] = self.case["topic"] is not None or self.case["as_of"] is not None
        return found

    def formed(self, c: Row) -> bool:
        claim, start, end = c["claim"], c["start"], c["end"]
        ranged = claim is None or 0 <= claim < len(self.claims)
        placed = (start is None) == (end is None) and (start is None or 0 <= start <= end)
        return ranged and bool(c["id"]) and placed

    def supplied(self, c: Row) -> bool:
        return c["id"] in {item["id"] for item in self.trace["context"]}

    def dangling(self, c: Row) -> bool:
        return bool(c["id"]) and c["id"] not in self.chunks and not self.supplied(c)

    def version(self, c: Row, unit: Row | None) -> bool | None:
        if unit is None:
            return False
        if c["doc_version"] is None or unit["doc_version"] is None:
            return None
        return c["doc_version"] == unit["doc_version"]

    def text(self, unit: Row) -> str | None:
        lang = self.trace.get("lang")
        return unit[f"text_{lang}" if f"text_{lang}" in unit else "text"]

    def cited(self, c: Row, unit: Row | None) -> tuple[int, int] | None:
        """Code points of the unit's text that are cited; None where that is no place in it."""
        text = self.text(unit) if unit else None
        if text is None or not self.formed(c):
            return None
        if c["start"] is not None:
            start, end = c["start"] - (unit["start"] or 0), c["end"] - (unit["start"] or 0)
            right = 0 <= start <= end <= len(text)
            said = c["quote"] is None or (right and text[start:end] == c["quote"])
            return (start, end) if right and said else None
        if c["quote"] is not None:
            at = text.find(c["quote"])
            return (at, at + len(c["quote"])) if at >= 0 else None
        return 0, len(text)

    def quote(self, c: Row, unit: Row | None) -> bool | None:
        if unit is None or self.text(unit) is None or not self.formed(c):
            return None
        return self.cited(c, unit) is not None

    def accessible(self, unit: Row | None) -> bool | None:
        if unit is None:
            return None
        if unit["acl"] is None or set(unit["acl"]) & set(self.case["principals"] or ()):
            return True
        return None if self.case["principals"] is None else False

    def scope(self, unit: Row | None) -> bool | None:
        topic, day = self.case["topic"], self.case["as_of"]
        if unit is None or (topic is None and day is None):
            return None
        on_topic = True if topic is None else None
        if topic is not None and unit["topic"] is not None:
            on_topic = topic == unit["topic"]
        since, until = unit["valid_from"], unit["valid_until"]
        dated = day is None or (
            (since is None or since <= day) and (until is None or day < until)
        )  # fmt: skip
        return both(on_topic, dated)

    def inside(self, c: Row, unit: Row | None) -> bool | None:
        if unit is None:
            return False if self.case["evidence"] is not None else None
        whole = c["start"] is None and c["quote"] is None
        place = self.cited(c, unit)
        head = unit["start"] or 0
        low, high = (place[0] + head, place[1] + head) if place else (c["start"], c["end"])
        if c["start"] is not None and not self.formed(c):
            low = high = None
        said: list[bool | None] = []
        if self.case["evidence"] is None:
            return None
        for item in self.case["evidence"]:
            if item["chunk_id"] != c["id"] or item["role"] not in _SERVES:
                continue
            if whole:
                said.append(True)
            elif low is None or item["start"] is None:
                text = self.text(unit)[slice(*place)] if place else c["quote"]
                wanted = item.get("quote")
                known = text is not None and wanted is not None
                said.append(" ".join(wanted.split()) in " ".join(text.split()) if known else None)
            else:
                said.append(low <= item["start"] and item["end"] <= high)
        return True if True in said else None if None in said else False

    def value_held(self, c: Row) -> bool | None:
        """Of whole numbers and words in plain texts alone."""
        value, unit = self.trace["proposed"]["value"], self.chunks.get(c["id"])
        if value is None:
            return True
        place = self.cited(c, unit)
        text = self.text(unit)[slice(*place)] if place else c["quote"]
        if text is None:
            return None
        return (
            re.search(rf"(?<![\wé.,]){re.escape(value)}(?!\w|[.,]\d)", text, re.ASCII) is not None
        )

    def supports(self, i: int) -> bool | None:
        found = self.pairs[i]
        exists = found["version"]
        if exists is None:
            exists = True
        scoped = found["in_scope"] if found["declared"] else True
        return both(found["well_formed"], exists, found["quote"], scoped, found["span_inside"],
                    self.value_held(self.citations[i]))  # fmt: skip

    def alive(self, i: int, before: str = "") -> bool:
        """Whether a pair failed no stage before one."""
        for stage in STAGES:
            if stage == before:
                return True
            if self.pairs[i][stage] is False:
                return False
        return True

    # Measures

    def stage(self, name: str) -> Fraction | str:
        """Passed among those that got there and could be checked."""
        came = [i for i in range(len(self.pairs)) if self.alive(i, name)]
        said = [self.pairs[i][name] for i in came if self.pairs[i][name] is not None]
        if not came:
            return NA
        return Fraction(said.count(True), len(said)) if said else MISSING

    def share(self, checks: list[bool | None]) -> Fraction | str:
        if None in checks:
            return MISSING
        return Fraction(checks.count(True), len(checks)) if checks else NA

    def support(self) -> Fraction | str:
        return self.share([self.supports(i) for i in range(len(self.pairs))])

    def factual(self) -> list[int]:
        """Claims of fact; those that do not say are."""
        return [j for j, claim in enumerate(self.claims) if claim["factual"] is not False]

    def answered(self) -> bool | None:
        """Cited, all of it supports, and every claim (or sentence) stands in what is cited."""
        spans: list[str | None] = []
        for c in self.citations:
            unit = self.chunks.get(c["id"])
            place = self.cited(c, unit)
            spans.append(self.text(unit)[slice(*place)] if place else c["quote"])
        pieces = [self.claims[j]["text"] for j in self.factual()]
        if not pieces:
            text = self.trace["proposed"]["text"] or ""
            pieces = re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n", text)
        folded = [" ".join(s.split()) for s in spans if s is not None]
        held = all(any(" ".join(p.split()) in s for s in folded) for p in pieces if p.strip())
        if not pieces or not any(p.strip() for p in pieces):
            held = True
        covered = True if held else None if None in spans else False
        return both(bool(self.citations), covered, *map(self.supports, range(len(spans))))

    def fabricated(self) -> int:
        return sum(p["well_formed"] is True and p["supplied"] is False for p in self.pairs)

    def presence(self) -> Fraction | str:
        formed = [c for c in self.citations if self.formed(c)]
        return self.share([any(c["claim"] in (None, j) for c in formed) for j in self.factual()])

    def precision(self) -> Fraction | str:
        said: list[bool | None] = []
        for i, c in enumerate(self.citations):
            verdict = self.verdicts.get(("cites", c["claim"], frozenset([c["id"]])))
            if not self.alive(i, "accessible"):
                said.append(False)
            elif verdict is not None:
                said.append(verdict == "yes")
            else:
                said.append(self.pairs[i]["span_inside"])
        return self.share(said)

    def union(self, j: int) -> str | None:
        """What a claim's citations say together; None where nobody judged enough."""
        ids = frozenset(c["id"] for i, c in enumerate(self.citations)
                        if c["claim"] in (None, j) and self.alive(i, "accessible"))  # fmt: skip
        if not ids:
            return "no"
        if ("cites", j, ids) in self.verdicts:
            return self.verdicts["cites", j, ids]
        alone = [self.verdicts.get(("cites", j, frozenset([one]))) for one in ids]
        if "yes" in alone:
            return "yes"
        return None if None in alone else max(alone, key=lambda v: WEIGHT[v])

    def recall(self) -> Fraction | str:
        found = [self.union(j) for j in self.factual()]
        return self.share([None if v is None else v == "yes" for v in found])

    def laundering(self) -> int | str:
        total, open_ = 0, False
        for j in range(len(self.claims)):
            if not any(c["claim"] in (None, j) and self.formed(c) for c in self.citations):
                continue
            right, held = self.verdicts.get(("correct", j, frozenset())), self.union(j)
            if held in ("yes", "partial") or right in ("no", "partial", "contradicts"):
                continue
            if right is None or held is None:
                open_ = True
            else:
                total += 1
        return MISSING if open_ else total

    def sentences(self) -> list[tuple[list[int], list[str]]]:
        """Claims of each sentence, and the units that they cite and that were shown."""
        grouped: dict[Any, list[int]] = {}
        for j, claim in enumerate(self.claims):
            said = claim["sentence"]
            grouped.setdefault(("alone", j) if said is None else said, []).append(j)
        return [
            (claims, sorted({
                c["id"] for c, pair in zip(self.citations, self.pairs, strict=True)
                if c["claim"] in claims and pair["well_formed"] and pair["supplied"]
            }))
            for claims in grouped.values()
        ]  # fmt: skip

    def entailed(self, claims: list[int], ids: list[str]) -> Fraction | None:
        """Weight of what some units say of a sentence: of its least supported claim."""
        if not ids:
            said = [self.verdicts.get(("cites", j, frozenset())) for j in claims]
        else:
            said = [self.verdicts.get(("cites", j, frozenset(ids))) for j in claims]
        known = [WEIGHT[v] for v in said if v is not None]
        if 0 in known:
            return Fraction(0)
        return None if None in said else min(known)

    def alce(self) -> tuple[Fraction | str, Fraction | str]:
        """Recall and precision, as defined by Gao and others, with 0 for nothing."""
        recall: list[bool | None] = []
        precise: list[bool | None] = []
        for claims, ids in self.sentences():
            joint = self.entailed(claims, ids) if ids else Fraction(0)
            recall.append(None if joint is None else joint == 1)
            for one in ids:
                if joint is None or joint < 1 or len(ids) == 1:
                    precise.append(None if joint is None else joint == 1)
                    continue
                alone = self.entailed(claims, [one])
                rest = self.entailed(claims, [o for o in ids if o != one])
                if alone == 1:
                    precise.append(True)
                else:
                    precise.append(None if alone is None or rest is None else rest < 1)
        lost = [p for p in self.pairs if not (p["well_formed"] and p["supplied"])]
        out = []
        for said, more in ((recall, 0), (precise, len(lost))):
            n = max(len(said) + more, 1)
            out.append(MISSING if None in said else Fraction(said.count(True), n))
        return out[0], out[1]

    def trec(self, strict: bool) -> tuple[Fraction | str, Fraction | str]:
        """Weighted precision and recall."""

        def weight(w: Fraction) -> Fraction:
            return Fraction(int(w == 1)) if strict else w

        judged = []
        for c, pair in zip(self.citations, self.pairs, strict=True):
            verdict = self.verdicts.get(("cites", c["claim"], frozenset([c["id"]])))
            if not (pair["well_formed"] and pair["supplied"]):
                judged.append(Fraction(0))
            elif verdict is not None:
                judged.append(weight(WEIGHT[verdict]))
        precision: Fraction | str = NA
        if self.citations:
            precision = sum(judged, Fraction(0)) / len(judged) if judged else MISSING
        said: list[Fraction | None] = []
        for claims, ids in self.sentences():
            joint = self.entailed(claims, ids) if ids else Fraction(0)
            if joint is None:
                alone = [self.entailed(claims, [one]) for one in ids]
                known = [w for w in alone if w is not None]
                joint = max(known) if 1 in known or (known and None not in alone) else None
            said.append(joint)
        recall: Fraction | str = NA
        if said:
            total = sum((weight(w) for w in said if w is not None), Fraction(0))
            recall = MISSING if None in said else total / len(said)
        return precision, recall

    def distinct(self, of: str) -> Fraction | str:
        """Distinct families or documents of the claims that cite anything."""
        sizes, dark = [], False
        for j in range(len(self.claims)) if self.claims else [None]:
            units = {c["id"] for c, p in zip(self.citations, self.pairs, strict=True)
                     if c["claim"] in (None, j) and p["well_formed"] and p["supplied"]}  # fmt: skip
            names = {self.chunks[u][of] if u in self.chunks else None for u in units}
            dark |= None in names
            sizes += [len(names)] if names else []
        if dark:
            return MISSING
        return Fraction(sum(sizes), len(sizes)) if sizes else NA
