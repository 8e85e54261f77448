"""Writes the folder of an authored suite: tables, and a `suite.toml` with a checksum for each.

Generators of suites share it, so that equal contents make equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Tables = Mapping[str, tuple[list[Row], pa.Schema, dict[bytes, bytes]]]
"""By file name: rows, their schema, and the schema's metadata."""

CHINESE = (
    pa.field("title_zh", pa.large_string()),
    pa.field("text_zh", pa.large_string()),
    pa.field("n_tokens_zh", pa.int32()),
)
"""Columns of chunks that keep one id in both languages: the schema's own hold the English."""
TEXT_COLUMNS = {"en": ["title", "text"], "zh": ["title_zh", "text_zh"]}
"""Where the texts of a language are: metadata of such chunks."""


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces, so that equal values have equal hashes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def bilingual(titles: Mapping[str, str], texts: Mapping[str, str]) -> Row:
    """Columns of a chunk that is a whole document in both languages; lengths in code points.

    Parameters
    ----------
    titles, texts : by language, ``en`` and ``zh``.
    """
    text, chinese = texts["en"], texts["zh"]
    return {
        "start": 0, "end": len(text), "title": titles["en"], "text": text, "n_tokens": len(text),
        "sha256": hashlib.sha256(text.encode()).digest(), "lang": "en", "deleted": False,
        "title_zh": titles["zh"], "text_zh": chinese, "n_tokens_zh": len(chinese),
    }  # fmt: skip


def write_suite(out: Path, tables: Tables, about: Mapping[str, Any]) -> None:
    """Write every table under `out`, and the `suite.toml` that describes them.

    Parameters
    ----------
    out : the folder.
    tables : see `Tables`; the order of the files in `suite.toml`.
    about : what `suite.toml` begins with: texts, flags and lists of texts.
    """
    parts = ["# Written by generate.py.\n" + "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
        for name, value in {**about, "pyarrow": pa.__version__}.items()
    )]  # fmt: skip
    for name, (rows, of, metadata) in tables.items():
        _write(out / name, rows, of, metadata)
        checksum = hashlib.sha256((out / name).read_bytes()).hexdigest()
        parts.append(f'[files."{name}"]\nsha256 = "{checksum}"\nrows = {len(rows)}\n')
    (out / "suite.toml").write_text("\n".join(parts), encoding="utf-8", newline="\n")


def _write(path: Path, rows: list[Row], of: pa.Schema, metadata: dict[bytes, bytes]) -> None:
    """One record batch as an uncompressed Arrow IPC file."""
    batch = pa.RecordBatch.from_pylist(rows, schema=of.with_metadata(metadata))
    batch.validate(full=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
