"""Verdicts on the claims of many answers, drawn with a seed: matrices, and files of a suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = ("yes", "partial", "no", "contradicts")
SHARES = (0.35, 0.05, 0.5, 0.1)
"""How often each verdict is drawn, apart from matrices, where `yes` is rarer."""


@dataclass
class World:
    """Verdicts of n answers with as many claims and chunks each.

    Attributes
    ----------
    n, claims, references, chunks : cases; answer claims, reference claims and chunks of each.
    correct, covered, entailed : flat int8 over claims, as places in `WORDS`.
    by_answer, by_reference : flat int8, claims x chunks of each case, row by row.
    """

    n: int
    claims: int
    references: int
    chunks: int
    correct: Any
    covered: Any
    entailed: Any
    by_answer: Any
    by_reference: Any

    @property
    def bytes(self) -> int:
        """Bytes of the verdicts."""
        return sum(
            part.nbytes for part in (self.correct, self.covered, self.entailed, self.by_answer,
                                     self.by_reference)
        )  # fmt: skip

    def first(self, n: int) -> World:
        """The first n cases."""
        a, y, c = self.claims, self.references, self.chunks
        return World(
            n, a, y, c, self.correct[: n * a], self.covered[: n * y], self.entailed[: n * a],
            self.by_answer[: n * a * c], self.by_reference[: n * y * c],
        )  # fmt: skip


def draw(n: int, claims: int, references: int, chunks: int, seed: int) -> World:
    """A world out of a seed."""
    rng = np.random.default_rng(seed)

    def verdicts(size: int, shares: tuple[float, ...]) -> Any:
        ends = (np.cumsum(shares) * 256).astype(np.uint8)[:-1]
        return np.searchsorted(ends, rng.integers(0, 256, size, np.uint8), "right").astype(np.int8)

    rare = (0.12, 0.03, 0.8, 0.05)
    return World(
        n, claims, references, chunks, verdicts(n * claims, SHARES),
        verdicts(n * references, SHARES), verdicts(n * claims, SHARES),
        verdicts(n * claims * chunks, rare), verdicts(n * references * chunks, rare),
    )  # fmt: skip


def _lists(width: int, n: int, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32) * width), values)


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table, max_chunksize=1 << 20)


def _same(word: str, n: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([word]))


def write(world: World, folder: Path) -> None:
    """The suite, a run, and its judgments in both forms: ``packed.arrow`` and ``plain.arrow``."""
    n, a, y, c = world.n, world.claims, world.references, world.chunks
    suite = folder / "suite"
    suite.mkdir(parents=True, exist_ok=True)
    (suite / "suite.toml").write_text('name = "drawn"\n', encoding="utf-8")
    ids = pa.array([f"case-{i:07d}" for i in range(n)])
    pool = pa.array([f"chunk-{i}" for i in range(max(c, min(n * c, 200_000)))])
    places = (np.arange(n)[:, None] * c + np.arange(c)) % len(pool)  # distinct in each case
    chunks = pool.take(pa.array(places.ravel()))
    marks = pa.StructArray.from_arrays([pa.array(np.ones(n * y, np.bool_))], ["required"])
    said = pa.StructArray.from_arrays([pa.array(np.zeros(n * a, np.int16))], ["sentence"])
    shown = pa.StructArray.from_arrays([chunks], ["id"])
    _write(pa.table({"case_id": ids, "claims": _lists(y, n, marks)}), suite / "cases.arrow")
    _write(pa.table({
        "case_id": ids, "ranked": _lists(1, n, pool.take(pa.array(np.zeros(n, np.int64)))),
        "claims": _lists(a, n, said), "context": _lists(c, n, shown),
    }), folder / "run.arrow")  # fmt: skip
    relations = {
        "correct": (a, world.correct), "entailed": (a, world.entailed),
        "covered": (y, world.covered), "chunk_entails": (a * c, world.by_answer),
        "chunk_entails_reference": (y * c, world.by_reference),
    }  # fmt: skip
    packed, plain = [], []
    for relation, (width, values) in relations.items():
        packed.append(pa.table({
            "case_id": ids, "relation": _same(relation, n), "judge": _same("j", n),
            "rung": _same("model", n), "verdicts": _lists(width, n, pa.array(values)),
        }))  # fmt: skip
        m, wide = n * width, c if relation.startswith("chunk_") else 1
        at = np.tile(places, (1, width // wide)).ravel() if wide > 1 else np.zeros(0, np.int64)
        plain.append(pa.table({
            "case_id": pa.DictionaryArray.from_arrays(
                pa.array(np.repeat(np.arange(n, dtype=np.int32), width)), ids),
            "relation": _same(relation, m), "judge": _same("j", m), "rung": _same("model", m),
            "claim": np.tile(np.repeat(np.arange(width // wide, dtype=np.int16), wide), n),
            "evidence": _lists(int(wide > 1), m, pool.take(pa.array(at))),
            "verdict": pa.DictionaryArray.from_arrays(
                pa.array(values.astype(np.int32)), pa.array(WORDS)),
        }))  # fmt: skip
    _write(pa.concat_tables(packed).unify_dictionaries(), folder / "packed.arrow")
    _write(pa.concat_tables(plain).unify_dictionaries(), folder / "plain.arrow")
