"""Material for the tests: worlds of rankings, every Arrow layout of them, piece tables, suites."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import reference
from ragcore_kernels import layout, order, ranking
from ragcore_kernels import rows as kernel_rows

Rows = list[tuple[str, float]]
Run = dict[str, Rows]
Qrels = dict[str, dict[str, int]]

# --- ids


def hostile_ids() -> list[bytes]:
    """Ids of 0..40 bytes that share beginnings and ends, NULs, long ones, and hash collisions."""
    out = [bytes([97 + i % 3]) * i for i in range(41)]
    out += [b"p" * i + b"x" + b"s" * (39 - i) for i in range(40)]  # differ in one place
    out += [b"p" * 3 + bytes([65 + i]) + b"s" * i for i in range(20)]
    out += [b"\0", b"\0\0", b"a\0", b"a\0b", b"\0" * 8, b"\0" * 9, b"doc\0" + b"1" * 20]
    out += [b"x" * 10_000, b"x" * 9_999 + b"y", b"y" + b"x" * 9_999]
    out += ["é".encode(), "e\u0301".encode(), "文档7".encode(), "🙂".encode(), b"\xff\xfe", b"\xe9"]
    return list(dict.fromkeys(out + colliding()))


def colliding() -> list[bytes]:
    """Unequal ids with one hash: of 1, 2 and 3 bytes, of 4 and 5, and of 16."""
    out = [b"a", b"ba", b"caa", b"zzzz", bytes([122 ^ 1]) + b"zzzz"]
    mask = (1 << 64) - 1
    for last in (b"00000001", b"AAAAAAAA", b"\xff" * 8):
        high = int.from_bytes(last, "little")
        target = 0x0123456789ABCDEF
        first = (target ^ high ^ (high >> 32)) & mask
        out.append(first.to_bytes(8, "little") + last)
    return out


# --- piece tables, without Arrow


class Pieces:
    """A column of ids as a piece table of one kind, built by hand."""

    def __init__(self, chunks: Sequence[Sequence[bytes]], kind: str = "offsets32") -> None:
        self.chunks = [list(chunk) for chunk in chunks]
        self.keep: list[Any] = []
        build = getattr(self, f"_{kind.removeprefix('codes-')}")
        rows = []
        for chunk in self.chunks:
            if kind.startswith("codes-"):
                rows.append((len(chunk), layout.CODES, *self._coded(chunk, build)))
            else:
                rows.append((len(chunk), *build(chunk), 0, 0, 0))
        self.table = layout.pieces(rows)

    def _hold(self, array: np.ndarray) -> int:
        self.keep.append(array)
        return int(array.ctypes.data)

    def _bytes(self, chunk: Sequence[bytes]) -> int:
        return self._hold(np.frombuffer(b"".join(chunk) + b"!", np.uint8))

    def _offsets32(self, chunk: Sequence[bytes], dtype: Any = np.int32) -> tuple[int, int, int]:
        ends = np.cumsum([0, *map(len, chunk)]).astype(dtype)
        kind = layout.OFFSETS32 if dtype is np.int32 else layout.OFFSETS64
        return kind, self._hold(ends), self._bytes(chunk)

    def _offsets64(self, chunk: Sequence[bytes]) -> tuple[int, int, int]:
        return self._offsets32(chunk, np.int64)

    def _views(self, chunk: Sequence[bytes]) -> tuple[int, int, int]:
        views = np.zeros((len(chunk) + 1, 16), np.uint8)
        long = [value for value in chunk if len(value) > 12]
        halves = long[: len(long) // 2], long[len(long) // 2 :]
        spots = self._hold(
            np.array([(self._bytes(half), sum(map(len, half))) for half in halves], np.int64)
        )
        at = [0, 0]
        for i, value in enumerate(chunk):
            views[i, :4] = np.frombuffer(np.int32(len(value)).tobytes(), np.uint8)
            if len(value) <= 12:
                views[i, 4 : 4 + len(value)] = np.frombuffer(value, np.uint8)
                continue
            which = int(sum(map(len, halves[0])) <= at[0])
            place = np.array([which, at[which]], np.int32).tobytes()
            views[i, 4:] = np.frombuffer(value[:4] + place, np.uint8)
            at[which] += len(value)
        return layout.VIEWS, self._hold(views), spots

    def _coded(self, chunk: Sequence[bytes], build: Callable[..., Any]) -> tuple[int, ...]:
        """Codes into a dictionary that holds every value twice, and one that nobody uses."""
        values = list(dict.fromkeys(chunk))
        where = {value: i for i, value in enumerate(values)}
        codes = [where[v] + len(values) * (i % 2) for i, v in enumerate(chunk)]
        return self._hold(np.array([*codes, 0], np.int32)), 0, *build([*values, *values, b"unused"])


KINDS = ("offsets32", "offsets64", "views", "codes-offsets32", "codes-offsets64", "codes-views")

# --- Arrow layouts

VALUES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
}
CODES = {"int8": pa.int8(), "uint8": pa.uint8(), "int16": pa.int16(), "int32": pa.int32(),
         "uint32": pa.uint32(), "int64": pa.int64()}  # fmt: skip
LAYOUTS = [*VALUES, *(f"dict-{code}-{value}" for code in CODES for value in VALUES)]


def column(ids: Sequence[str], kind: str = "string") -> pa.Array:
    """Ids as an Arrow array of the layout called `kind`; dictionaries repeat some values."""
    if not kind.startswith("dict-"):
        return pa.array(list(ids), VALUES[kind])
    _, code, value = kind.split("-")
    names = list(dict.fromkeys(ids))
    room = 2 * len(names) + 1 <= 127 or code not in ("int8", "uint8")
    where = {name: i for i, name in enumerate(names)}
    codes = [where[name] + (len(names) if room and i % 2 else 0) for i, name in enumerate(ids)]
    values = pa.array(["unused", *names, *(names if room else [])], VALUES[value])
    return pa.DictionaryArray.from_arrays(pa.array([c + 1 for c in codes], CODES[code]), values)


def sliced(array: pa.Array) -> pa.Array:
    """The same values in the middle of a longer array."""
    if len(array) == 0:
        return array
    first, last = array.slice(0, 1), array.slice(len(array) - 1)
    if pa.types.is_dictionary(array.type):
        codes = pa.concat_arrays([last.indices, array.indices, first.indices])
        return pa.DictionaryArray.from_arrays(codes, array.dictionary).slice(1, len(array))
    return pa.concat_arrays([last, array, first]).slice(1, len(array))


def cut(array: pa.Array, cuts: Iterable[int]) -> pa.ChunkedArray:
    """An array in chunks that end at `cuts`; repeated cuts make chunks of no rows."""
    places = [0, *sorted(min(c, len(array)) for c in cuts), len(array)]
    chunks = [array.slice(a, b - a) for a, b in pairwise(places)]
    return pa.chunked_array(chunks, array.type)


def flat(run: Run, kind: str = "string", *, cuts: Iterable[int] = (), **extra: Any) -> pa.Table:
    """Flat rows of a run, ids of both kinds in the layout called `kind`."""
    rows = [(case, *row) for case, pairs in run.items() for row in pairs]
    return flat_of(rows, kind, cuts=cuts, **extra)


def flat_of(
    rows: Sequence[tuple[str, str, float]],
    kind: str = "string",
    *,
    cuts: Iterable[int] = (),
    **extra: Any,
) -> pa.Table:
    cuts = list(cuts)
    arrays = {
        "case_id": column([r[0] for r in rows], kind),
        "doc_id": column([r[1] for r in rows], kind),
        "score": pa.array([r[2] for r in rows], pa.float64()),
    }
    return pa.table({name: cut(array, cuts) for name, array in arrays.items()} | extra)


def judged(qrels: Qrels, kind: str = "string", number: Any = None) -> pa.Table:
    rows = [(case, doc, grade) for case, docs in qrels.items() for doc, grade in docs.items()]
    return pa.table(
        {
            "query_id": column([r[0] for r in rows], kind),
            "doc_id": column([r[1] for r in rows], kind),
            "relevance": pa.array([r[2] for r in rows], number or pa.int32()),
        }
    )


# --- nested lists

LISTS = ("list", "large_list", "list_view", "large_list_view", "fixed_size_list")


def lists(values: Sequence[Any], form: str, item: pa.DataType) -> pa.Array:
    """Lists (None = null) as an Arrow array of one of `LISTS`; all equally long for the last."""
    if form == "fixed_size_list":
        size = max((len(v) for v in values if v is not None), default=0)
        return pa.array(list(values), pa.list_(item, size))
    kinds = {"list": pa.list_, "large_list": pa.large_list, "list_view": pa.list_view}
    kinds["large_list_view"] = pa.large_list_view
    return pa.array(list(values), kinds[form](item))


def nested(
    run: dict[str, Rows | None], form: str = "list", scores: bool = False, **extra: Any
) -> pa.Table:
    """A case batch in recorded order; lists of ids, or of structs with scores."""
    kind: pa.DataType = pa.string()
    values: list[Any] = [
        None if rows is None else [doc for doc, _ in rows] for rows in run.values()
    ]
    if scores:
        kind = pa.struct([("id", pa.string()), ("score", pa.float64())])
        values = [
            None if rows is None else [{"id": doc, "score": value} for doc, value in rows]
            for rows in run.values()
        ]
    names = pa.array(list(run), pa.string())
    return pa.table({"case_id": names, "ranked": lists(values, form, kind)} | extra)


def write_ipc(table: pa.Table, path: Path, stream: bool = False) -> Path:
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


def read_ipc(path: Path) -> pa.Table:
    return pa.ipc.open_file(path.read_bytes()).read_all()


def write_suite(folder: Path, cases: pa.Table, toml: str = 'name = "little"\n') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(toml, encoding="utf-8")
    write_ipc(cases, folder / "cases.arrow")
    return folder


def evidence(*items: Any) -> list[dict[str, Any]]:
    """Evidence of a case from ids, (id, relevance) or (id, relevance, required)."""
    out = []
    for item in items:
        doc, grade, required = (*((item,) if isinstance(item, str) else item), None, None)[:3]
        out.append({"doc_id": doc, "relevance": grade, "required": required})
    return out


def world(
    seed: int, n_cases: int = 12, depth: int = 30, ties: bool = True, negative: bool = True
) -> tuple[Run, Qrels]:
    """A run and judgements at random: ties, unjudged and pooled documents, cases on one side."""
    rng = random.Random(seed)
    run: Run = {}
    qrels: Qrels = {}
    for c in range(n_cases):
        pool = [f"d{i:03}" for i in range(2 * depth)]
        rng.shuffle(pool)
        steps = [rng.choice((0.0, -0.0, 1.5, 2.0, 1e308)) if ties else rng.random() for _ in pool]
        docs = pool[: rng.randint(0 if c % 5 else 1, depth)]
        run[f"c{c}"] = list(zip(docs, steps, strict=False))
        low = -2 if negative else 0
        some = rng.sample(pool, rng.randint(1, depth))
        qrels[f"c{c}"] = {doc: rng.randint(low, 3) for doc in some}
    run["unjudged"] = [("d000", 1.0)]
    qrels["unseen"] = {"d000": 1}
    return {case: rows for case, rows in run.items() if rows}, qrels


def truth(
    run: dict[str, Rows], qrels: Qrels, name: str, rel: int = 1, no_relevant: str = "zero"
) -> dict[str, float | None]:
    """The measure of every judged case, in plain Python."""
    return {
        case: reference.score(name, reference.order(run.get(case, [])), grades, rel, no_relevant)
        for case, grades in qrels.items()
    }


# --- the ranking kernels, without Arrow


def spread(rows: Sequence[Any], parts: int) -> list[list[Any]]:
    """Rows in `parts` chunks of about equal length, with an empty one among them."""
    cuts = [len(rows) * i // parts for i in range(parts + 1)]
    chunks = [list(rows[a:b]) for a, b in pairwise(cuts)]
    return [*chunks[:1], [], *chunks[1:]] if parts > 1 else chunks


class Board:
    """Rankings (rows, judged case or -1) and judgements, laid out for the ranking kernels.

    Rows lie in several pieces, so that a ranking may own several segments.
    """

    def __init__(
        self,
        rankings: Sequence[tuple[Sequence[tuple[bytes, float]], int]],
        labels: Sequence[Sequence[tuple[bytes, int]]],
        kind: str = "offsets32",
        score: Any = np.float64,
        parts: int = 1,
    ) -> None:
        self.rankings, self.judgements, self.keep = rankings, labels, []
        rows = [row for ranked, _ in rankings for row in ranked]
        chunks = spread(rows, parts)
        self.ids = Pieces([[doc for doc, _ in chunk] for chunk in chunks], kind)
        self.values = np.zeros((len(chunks), 2), np.int64)
        for i, chunk in enumerate(chunks):
            code = {np.float64: kernel_rows.SCORE_F64, np.float32: kernel_rows.SCORE_F32}.get(
                score, kernel_rows.SCORE_NONE
            )
            self.values[i] = code, self._hold([v for _, v in chunk], score or np.float64)
        lengths = [len(ranked) for ranked, _ in rankings]
        self.segments, self.offsets = self._segments(chunks, lengths)
        items = [item for docs in labels for item in docs]
        label_chunks = spread(items, parts)
        self.label_ids = Pieces([[doc for doc, _ in chunk] for chunk in label_chunks], kind)
        self.grades = np.array(
            [self._hold([g for _, g in chunk], np.int32) for chunk in label_chunks], np.int64
        )
        self.label_segments, self.label_offsets = self._segments(label_chunks, map(len, labels))
        self.label_of = np.array([c for _, c in rankings], np.int64)
        room = [len(labels[c]) if c >= 0 else 0 for _, c in rankings]
        self.hit_offsets = np.cumsum([0, *room]).astype(np.int64)
        self.ideal_offsets = np.cumsum([0, *map(len, labels)]).astype(np.int64)
        self.ranks = np.full(self.hit_offsets[-1], -7, np.int32)
        self.hit_grades = np.full(self.hit_offsets[-1], -7, np.int32)
        self.ideal = np.full(self.ideal_offsets[-1], -7, np.int32)
        self.stats = np.full((len(rankings), ranking.STAT_FIELDS), -7, np.int64)

    def _hold(self, values: Sequence[float], dtype: Any) -> int:
        self.keep.append(np.array([*values, 0], dtype))
        return int(self.keep[-1].ctypes.data)

    @staticmethod
    def _segments(chunks: Sequence[Sequence[Any]], lengths: Iterable[int]) -> Any:
        """Segments of consecutive stretches of rows, cut where a chunk ends."""
        ends = np.cumsum([0, *map(len, chunks)]).tolist()
        out, offsets, row = [], [0], 0
        for length in lengths:
            stop = row + length
            for piece, (a, b) in enumerate(pairwise(ends)):
                if max(a, row) < min(b, stop):
                    out.append((piece, max(a, row) - a, min(b, stop) - max(a, row)))
            offsets.append(len(out))
            row = stop
        return np.array(out, np.int64).reshape(-1, 3), np.array(offsets, np.int64)

    @property
    def shared(self) -> tuple[Any, ...]:
        return (self.ids.table, self.values, self.segments, self.offsets, self.label_ids.table,
                self.grades, self.label_segments, self.label_offsets, self.label_of)  # fmt: skip

    def find(self, by: int = ranking.BY_SCORE, threads: int = 1) -> Board:
        def work(begin: int, end: int) -> None:
            ranking.find_hits(
                self.shared[0], *self.shared, begin, end, by, self.hit_offsets, self.ranks,
                self.hit_grades, self.ideal_offsets, self.ideal, self.stats,
            )  # fmt: skip

        split(work, len(self.rankings), threads)
        return self

    def tidy(
        self, which: Sequence[int], policy: int = 0, own: Any = None, by: int = ranking.BY_SCORE
    ) -> Board:
        """The rankings `which` with a sort; `own` is an id to leave out of each ranking."""
        places = np.empty((0, 2), np.int64)
        if own is not None:
            column = Pieces([own])
            self.keep.append(column)
            ends = np.cumsum([0, *map(len, own)])
            start = int(column.table[0, layout.SECOND])
            places = np.array([(start + a, b - a) for a, b in pairwise(ends)], np.int64)
        order.tidy(
            *self.shared, np.array(which, np.int64), by, policy, places, self.hit_offsets,
            self.ranks, self.hit_grades, self.stats,
        )  # fmt: skip
        return self

    def hits(self, t: int) -> list[tuple[int, int]]:
        """(rank, grade) of the hits of one ranking."""
        places = slice(self.hit_offsets[t], self.hit_offsets[t] + self.stats[t, ranking.N_HITS])
        return list(zip(self.ranks[places].tolist(), self.hit_grades[places].tolist(), strict=True))


def split(work: Callable[[int, int], Any], n: int, threads: int) -> None:
    """`work` on `threads` parts of ``range(n)``, at once."""
    cuts = [n * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))


def ordered(rows: Sequence[tuple[bytes, float]], by_score: bool = True) -> list[bytes]:
    """Ids by score falling, then id falling; or as recorded."""
    if not by_score:
        return [doc for doc, _ in rows]
    return [doc for doc, _ in sorted(rows, key=lambda row: (row[1], row[0]), reverse=True)]
