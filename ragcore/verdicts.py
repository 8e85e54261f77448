"""Verdicts on a run, resolved: one verdict an item, or the reason why there is none.

Adjudicated beats all, then the highest rung, then the declared judge; equals that differ are
`disputed`. An error is no opinion: it counts only where nothing else was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import InputError
from ragcore.judgments import Judgments
from ragcore.sides import Matching, Side, numbers_of, side_of
from ragcore.threads import run_split
from ragcore.units import Vocabulary
from ragcore_kernels import verdict_lists
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64

STATE_OF = {
    kernel.MISSING: schema.MISSING, kernel.DISPUTED: schema.DISPUTED,
    kernel.FAILED: schema.FAILED, kernel.LOW_RUNG: schema.DISPUTED,
}  # fmt: skip
"""State of a value that rests on a cell without a verdict."""
COUNTED = (
    "verdicts of no scored case",
    "verdicts of other runs",
    "verdicts of other languages or repeats",
    "verdicts on chunks that were not shown",
    "verdicts on several chunks",
    "verdicts on whole answers",
    "verdicts matched",
)
"""What became of verdicts that were looked for, in the order of the kernel's counts."""


_NAMED = 3


def some_of(names: list[str]) -> str:
    """``: case 'a', 'b' and 3 more``; "" of none."""
    if not names:
        return ""
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f": case {', '.join(map(repr, names[:_NAMED]))}{rest}"


@dataclass
class Cells:
    """Resolved verdicts, a stretch of them for each ranking.

    Attributes
    ----------
    offsets : (n + 1,), ranking i owns ``verdict[offsets[i]:offsets[i + 1]]``.
    verdict : (n_cells,) int8: `ragcore_kernels.verdicts.YES` and so on from 0, or a reason below 0.
    rank : (n_cells,) int8, from which `rung` follows.
    """

    offsets: I64
    verdict: Any
    rank: Any

    @property
    def rung(self) -> Any:
        """(n_cells,) int8, place in `schema.RUNGS` of the verdict that counts; -1 without one."""
        return kernel.rung_of(self.rank)

    @property
    def yes(self) -> Any:
        """(n_cells,) bool: the verdict is yes."""
        return self.verdict == kernel.YES

    @cached_property
    def summary(self) -> Any:
        """(n, 2) int8, `ragcore_kernels.verdicts.summarise` of each ranking."""
        out = np.empty((self.offsets.size - 1, 2), np.int8)

        def work(begin: int, end: int) -> None:
            kernel.summarise(begin, end, self.offsets, self.verdict, self.rank, out)

        run_split(work, len(out), 1)
        return out

    def states(self) -> Any:
        """(n,) int8, state of a value that needs every cell of a ranking: the worst of them."""
        return _WORST[self.summary[:, 0]]

    def lowest(self) -> Any:
        """(n,) int8, the lowest rung of the verdicts of a ranking, -1 where it has none."""
        return self.summary[:, 1]


_WORST = np.array(
    [max([STATE_OF[-1 - b] for b in range(4) if reasons >> b & 1] or [0]) for reasons in range(16)],
    np.int8,
)


class Verdicts:
    """The verdicts on one run.

    Parameters
    ----------
    judgments : all that were given; None for none.
    match : the rankings.
    vocabulary : codes of chunk ids.
    declared : the judge that counts among equals, "" for none.
    """

    def __init__(
        self,
        judgments: Judgments | None,
        match: Matching,
        vocabulary: Vocabulary,
        declared: str = "",
    ) -> None:
        self.judgments, self.match = judgments, match
        self._looked: dict[str, list[I64]] = {}
        self.taken_back = 0
        self._made: dict[tuple[str, int, int], tuple[tuple[I64, ...], Cells]] = {}
        self._sides: list[Side] = []
        if judgments is None:
            return
        langs: dict[str | None, int] = {None: -1}
        for word in match.lang or ():
            if word not in langs:
                langs[word] = len(langs)
        plain = side_of(judgments, match, vocabulary, langs, declared)
        self._sides = [plain] if len(judgments) else []
        if judgments.packed is not None:
            self._sides.append(side_of(judgments.packed, match, vocabulary, langs, declared))
        self._unit, self._rank = plain.unit, plain.rank
        self._case_code, self._lang_code = plain.case_code, plain.lang_code
        self._own_run = plain.own_run
        self._members = np.argsort(match.case_of, kind="stable").astype(np.int64)
        top = max(match.case_codes.max(initial=-1), match.case_of.max(initial=-1)) + 1
        counts = np.bincount(match.case_of, minlength=int(top))
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._langs = numbers_of(match.lang, match.case_of.size, langs.__getitem__)
        self._repeats = numbers_of(
            match.repeat, match.case_of.size, lambda r: -1 if r is None else r
        )

    def has(self, relation: str) -> bool:
        """Whether any verdict was given on a relation, of whatever run or case."""
        wanted = schema.RELATIONS.index(relation)
        return any(bool((side.given.relation == wanted).any()) for side in self._sides)

    def packs(self, relation: str) -> bool:
        """Whether any verdicts on a relation came packed, a list a row."""
        packed = None if self.judgments is None else self.judgments.packed
        if packed is None:
            return False
        return bool((packed.relation == schema.RELATIONS.index(relation)).any())

    def whole(self, relation: str) -> Cells:
        """One cell a ranking."""
        n = self.match.case_of.size
        none = np.zeros(n + 1, np.int64)
        return self._cells(relation, kernel.WHOLE, none, none, none[:0], np.arange(n + 1))

    def claims(self, relation: str, claims: I64) -> Cells:
        """One cell a claim; whatever chunks the verdict was given.

        Parameters
        ----------
        claims : (n + 1,) offsets of the claims of each ranking.
        """
        none = np.zeros(claims.size, np.int64)
        return self._cells(relation, kernel.CLAIMS, claims, none, none[:0], claims)

    def units(self, relation: str, shown: I64, units: I64) -> Cells:
        """One cell a unit; verdicts on one chunk each.

        Parameters
        ----------
        shown, units : (n + 1,) offsets and flat codes of the units of each ranking.
        """
        none = np.zeros(shown.size, np.int64)
        return self._cells(relation, kernel.UNITS, none, shown, units, shown)

    def pairs(self, relation: str, claims: I64, shown: I64, units: I64) -> Cells:
        """Claims x units of each ranking, row by row; verdicts on one claim and one chunk each."""
        sizes = np.diff(claims) * np.diff(shown)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return self._cells(relation, kernel.PAIRS, claims, shown, units, offsets)

    def matches(self, relation: str, claims: I64, known: Any) -> tuple[I64, I64]:
        """Verdicts of one relation and the rankings that each is on, pair by pair.

        For those who look at the chunks that a verdict was given themselves; `resolve` settles
        what several say.

        Parameters
        ----------
        claims : (n + 1,) offsets of the claims of each ranking, which a verdict's claim must be
            one of; a null claim is the whole answer.
        known : (n,) bool, whether the claims are recorded; nobody knows the range of others.

        Raises
        ------
        InputError
            If a verdict is on a claim that its answer has not.
        """
        given = self.judgments
        if given is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = np.flatnonzero(given.relation == schema.RELATIONS.index(relation))
        ours = (given.run[rows] < 0) | (given.run[rows] == self._own_run)
        code = self._case_code[given.case[rows]]
        top = self._starts.size - 1
        sizes = np.where((code >= 0) & (code < top), np.append(np.diff(self._starts), 0)[code], 0)
        counts = np.zeros(kernel.COUNTS, np.int64)
        counts[kernel.OTHER_RUN] = int((~ours).sum())
        counts[kernel.UNKNOWN_CASE] = int((ours & (sizes == 0)).sum())
        sizes = np.where(ours, sizes, 0)
        at = np.repeat(np.arange(rows.size), sizes)
        within = np.arange(at.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        row, ranking = rows[at], self._members[self._starts[code[at]] + within]
        lang, repeat = self._lang_code[given.lang[row]], given.repeat[row].astype(np.int64)
        own, nth = self._langs[ranking], self._repeats[ranking]
        kept = (given.lang[row] < 0) | (own < 0) | (lang == own)
        kept &= (repeat < 0) | (nth < 0) | (repeat == nth)
        counts[kernel.OTHER_VARIANT] = np.setdiff1d(row, row[kept]).size
        row, ranking = row[kept], ranking[kept]
        bad = known[ranking] & (given.claim[row] >= np.diff(claims)[ranking])
        if bad.any():
            raise self._bad_claim(relation, int(row[bad].min()), claims)
        counts[kernel.MATCHED] = row.size
        self._looked.setdefault(relation, []).append(counts)
        return row, ranking

    def resolve(self, row: I64, key: I64, ranking: I64, n: int) -> tuple[Any, Any]:
        """One verdict a key out of those that `matches` gave: `verdict` and `rank` as in `Cells`.

        Parameters
        ----------
        row, key, ranking : the verdicts, the key of each from 0 to n - 1, and its ranking.
        """
        cells, ranks = np.full(n, kernel.MISSING, np.int8), np.full(n, -1, np.int8)
        given = self.judgments
        if given is None or not row.size:
            return cells, ranks
        said, rank = given.verdict[row], self._rank[row]
        real = said != kernel.ERROR
        cells[key[~real]], ranks[key[~real]] = kernel.FAILED, kernel.ONLY_ERRORS
        np.maximum.at(ranks, key[real], rank[real])
        top = real & (rank == ranks[key])
        low, high = np.full(n, 127, np.int8), np.full(n, -1, np.int8)
        np.minimum.at(low, key[top], said[top])
        np.maximum.at(high, key[top], said[top])
        settled, judged = (low == high) & (low != kernel.UNCLEAR), high >= 0
        cells[judged] = np.where(settled, low, kernel.DISPUTED)[judged]
        needed = np.zeros(n, np.int8)
        needed[key] = self.match.needed[ranking]
        below = (cells >= 0) & (kernel.rung_of(ranks) < needed)
        cells[below] = kernel.LOW_RUNG
        self.taken_back += int(below.sum())
        return cells, ranks

    def units_of(self, rows: I64) -> tuple[I64, I64]:
        """Codes of the chunks that verdicts were given: (n + 1,) offsets, and flat."""
        given = self.judgments
        assert given is not None
        sizes = np.diff(given.evidence.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        first = np.repeat(given.evidence.offsets[:-1][rows] - offsets[:-1], sizes)
        return offsets, self._unit[first + np.arange(first.size)]

    def _cells(
        self, relation: str, mode: int, claims: I64, shown: I64, units: I64, offsets: I64
    ) -> Cells:
        key = (relation, mode, int(offsets[-1]))
        layout = (claims, shown, units)
        if key in self._made:
            made, found = self._made[key]
            pairs = zip(made, layout, strict=True)
            if all(a is b or np.array_equal(a, b) for a, b in pairs):
                return found
        n_cells = int(offsets[-1])
        cells = np.full(n_cells, kernel.MISSING, np.int8)
        ranks = np.full(n_cells, kernel.NO_VERDICT, np.int8)
        total = np.zeros(kernel.COUNTS, np.int64)
        for side in self._sides if n_cells else ():
            given, packed = side.given, side.given.offsets is not None
            counts = np.zeros(kernel.COUNTS + 1, np.int64)
            counts[kernel.BAD_ROW] = -1
            many = (given.offsets, given.values) if packed else ()
            own = () if packed else (given.claim, given.verdict)
            put: Any = verdict_lists.unfold if packed else kernel.settle
            put(
                0, len(given), schema.RELATIONS.index(relation), mode, given.relation,
                given.case, given.lang, given.run, given.repeat, *own, side.rank, *many,
                given.evidence.offsets, side.unit, side.case_code, side.lang_code, side.own_run,
                self._starts, self._members, self._langs, self._repeats, claims, shown, units,
                offsets, cells, ranks, counts,
            )  # fmt: skip
            if counts[kernel.BAD_CLAIM] and packed:
                raise self._bad_list(given, relation, counts, claims, shown, mode)
            if counts[kernel.BAD_CLAIM]:
                raise self._bad_claim(relation, int(counts[kernel.BAD_ROW]), claims)
            total += counts[: kernel.COUNTS]
        if self._sides and n_cells:
            self.taken_back += kernel.hold_to_rung(offsets, self.match.needed, ranks, cells)
        if n_cells:
            self._looked.setdefault(relation, []).append(total)
        found = Cells(offsets, cells, ranks)
        self._made[key] = layout, found
        return found

    def _bad_claim(self, relation: str, row: int, claims: I64) -> InputError:
        given = self.judgments
        assert given is not None
        where, line = given.place(row)
        name = given.names["case"][int(given.case[row])].as_py()
        ranking = self._members[self._starts[self._case_code[given.case[row]]]]
        n = int(claims[ranking + 1] - claims[ranking])
        found = f"claim {given.claim[row]}"
        wanted = f"0 to {n - 1}" if n else "none, as it has no claims"
        return InputError(
            where, f"{found} of case {name!r}, relation {relation}", f"a claim index: {wanted}",
            "claims are numbered from 0, in the order of the column `claims`", row=line,
        )  # fmt: skip

    @staticmethod
    def _bad_list(
        given: Judgments, relation: str, counts: I64, claims: I64, shown: I64, mode: int
    ) -> InputError:
        row, ranking = int(counts[kernel.BAD_ROW]), int(counts[verdict_lists.BAD_RANKING])
        where, line = given.place(row)
        name = given.names["case"][int(given.case[row])].as_py()
        n = int(claims[ranking + 1] - claims[ranking])
        chunks = int(given.evidence.counts[row]) or int(shown[ranking + 1] - shown[ranking])
        found = int(given.offsets[row + 1] - given.offsets[row])
        wanted = {
            kernel.WHOLE: "1", kernel.CLAIMS: f"{n}, one for each claim",
            kernel.UNITS: f"{chunks}, one for each chunk",
            kernel.PAIRS: f"{n * chunks}, one for each of {n} claims x {chunks} chunks",
        }  # fmt: skip
        return InputError(
            where, f"{found} verdicts on case {name!r}, relation {relation}", wanted[mode],
            "claims in the order of the column `claims`; chunks as `evidence` names them, else in "
            "the order of the context", row=line,
        )  # fmt: skip

    def audit(self) -> dict[str, int]:
        """What became of the verdicts that were looked for, by name; zeros left out.

        A relation that several measures look at, each in its own way, counts once; what one of
        them could use is not lost.
        """
        totals = np.zeros(kernel.COUNTS, np.int64)
        for looks in self._looked.values():
            each = np.array(looks)
            totals += each.min(axis=0)
            totals[kernel.MATCHED] += each[:, kernel.MATCHED].max() - each[:, kernel.MATCHED].min()
        found: dict[str, int] = dict(zip(COUNTED, totals.tolist(), strict=False))
        cells = [c.verdict for _, c in self._made.values()]
        found["items disputed"] = sum(int((c == kernel.DISPUTED).sum()) for c in cells)
        found["items with errors alone"] = sum(int((c == kernel.FAILED).sum()) for c in cells)
        found["items judged below the required rung"] = int(self.taken_back)
        return {name: count for name, count in found.items() if count}

    def sentences(self) -> list[str]:
        """`audit` for people, the first cases named."""
        named = {
            COUNTED[kernel.UNKNOWN_CASE]: self._strangers, "items disputed": self._with_disputes,
        }  # fmt: skip
        return [
            f"{count} {name}{some_of(named[name]()) if name in named else ''}"
            for name, count in self.audit().items() if name != COUNTED[kernel.MATCHED]
        ]  # fmt: skip

    def _strangers(self) -> list[str]:
        """Cases that have verdicts and are not among the scored."""
        out: dict[str, None] = {}
        for side in self._sides:
            codes = side.case_code[: len(side.given.names["case"])]
            sizes = np.append(np.diff(self._starts), [0, 0])
            lost = np.flatnonzero((codes < 0) | (sizes[np.minimum(codes, sizes.size - 1)] == 0))
            for code in lost[np.isin(lost, side.given.case)].tolist():
                out[side.given.names["case"][code].as_py()] = None
        return list(out)

    def _with_disputes(self) -> list[str]:
        """Cases with an item that is disputed."""
        codes: dict[int, None] = {}
        for _, cells in self._made.values():
            at = np.flatnonzero(cells.verdict == kernel.DISPUTED)
            ranking = np.searchsorted(cells.offsets, at, side="right") - 1
            codes |= dict.fromkeys(self.match.case_of[ranking].tolist())
        known = {code: i for i, code in enumerate(self.match.case_codes.tolist())}
        return [self.match.case_ids[known[code]].as_py() for code in codes if code in known]
