"""What an importer gives: cases, chunks, recorded runs and verdicts, and what it left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Imported:
    """A collection in the engine's own columns.

    Attributes
    ----------
    cases : columns of `ragcore.schema.CASES`, perhaps with others to slice and filter by, and
        `vector`.
    chunks : columns of `ragcore.schema.CHUNKS`, perhaps with others and `vector`; None where the
        collection has no corpus here, so that runs can be scored but not made.
    runs : recorded case batches by name, columns of `ragcore.schema.RUNS`.
    judgments : recorded verdicts by name, columns of `ragcore.schema.JUDGMENTS`.
    notes : what did not come along, and what it is to be read with; a sentence each, with counts.
    """

    cases: pa.Table
    chunks: pa.Table | None = None
    runs: Mapping[str, pa.Table] = field(default_factory=dict)
    judgments: Mapping[str, pa.Table] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun: "1 question", "2 questions"; `many` where an s is not enough."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
