"""`ragcore doctor`: what is installed, where compiled kernels are kept, and compiling them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from ragcore import provenance
from ragcore.threads import default_threads


def examine() -> str:
    """Versions, processors and the kernel cache, one a line."""
    from ragcore_kernels._jit import CACHE_DIR, JIT

    lines = [f"{name:<16} {version or '(not installed)'}" for name, version in
             provenance.versions().items()]  # fmt: skip
    about = provenance.machine()
    lines.append(f"{'system':<16} {about['system']}")
    lines.append(f"{'threads':<16} {default_threads()}")
    if not JIT:
        lines.append(f"{'kernel cache':<16} off: compilation is disabled")
    elif CACHE_DIR is None:
        lines.append(
            f"{'kernel cache':<16} none: no folder can be written, so every process compiles; "
            "set RAGCORE_KERNELS_CACHE to a folder"
        )
    else:
        kept = len(list(CACHE_DIR.glob("*.nbi")))
        lines.append(f"{'kernel cache':<16} {CACHE_DIR} ({kept} kernels)")
    return "\n".join(lines)


def _warm_search() -> None:
    """Build an index of next to nothing, search it every way, fuse and audit what comes out."""
    import numpy as np
    import pyarrow as pa

    from ragcore.analysis import Analyzer
    from ragcore.audit_report import AuditSettings
    from ragcore.audit_runs import audit_run
    from ragcore.index.build import build
    from ragcore.index.chunks import read_chunks
    from ragcore.index.opened import open_index
    from ragcore.index.options import Options
    from ragcore.questions import read_questions
    from ragcore.search import search
    from ragcore.search_settings import Settings
    from ragcore_kernels import warm

    warm.compile_search()
    ids = [f"c{i:02}" for i in range(20)]
    flat = pa.array(np.random.default_rng(0).normal(size=80).astype(np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(flat, 4)
    texts = [f"w{i % 3} w{i % 5}" for i in range(20)]
    with tempfile.TemporaryDirectory() as folder:
        chunks = read_chunks(pa.table({"chunk_id": ids, "text": texts, "vector": vectors}))
        build(chunks, Path(folder) / "index", Options(Analyzer(), hnsw=False))
        index = open_index(Path(folder) / "index")
        asked = {"case_id": ids, "question": texts, "vector": vectors}
        questions = read_questions(pa.table(asked))
        search(index, questions, Settings("hybrid-exact"))
        lists: dict[Any, list[str]] = {(name, None): [name] for name in ids}
        assert questions.vectors is not None
        audit_run(index, questions, questions.vectors, lists, AuditSettings())


def warm_up() -> str:
    """Run every kernel of the main job once on a small example, so that it is compiled."""
    import pyarrow as pa

    from ragcore import score
    from ragcore.warming import warm_layers
    from ragcore_kernels import warm

    begin = time.perf_counter()
    rows = [(f"q{i % 3}", f"d{i}", float(-i)) for i in range(30)]
    run = pa.table({"case_id": [r[0] for r in rows], "id": [r[1] for r in rows],
                    "score": [r[2] for r in rows]})  # fmt: skip
    qrels = {f"q{i}": {f"d{i}": 1, f"d{i + 3}": 2} for i in range(3)}
    text = "".join(f"{case} Q0 {doc} 1 {value} t\n" for case, doc, value in rows)
    labels = "".join(f"{c} 0 {doc} {g}\n" for c, docs in qrels.items() for doc, g in docs.items())
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "run"), Path(folder, "qrels")
        for path, content in zip(paths, (text, labels), strict=True):
            path.write_text(content)
        for given in (run, run.set_column(1, "id", run["id"].dictionary_encode()), paths[0]):
            scores = score(given, qrels=paths[1], duplicates="first", drop_identical_ids=True)
            scores.summary()
            scores.table()
    score(run, qrels=qrels, bounds=("ties", "holes"))
    warm.compile_intervals()
    warm.compile_tests()
    warm.compile_rest()
    _warm_search()
    warm_layers()
    return f"kernels ready after {time.perf_counter() - begin:.1f} s"
