"""Two little runs to fuse, in every form, and what their fusion must be."""

import reference_fusion as reference
import tables

BM25 = {"q1": [("a", 9.0), ("b", 8.0), ("c", 7.0)], "q2": [("x", 3.0)]}
DENSE = {"q1": [("c", 0.9), ("d", 0.8), ("a", 0.7)], "q3": [("y", 0.5)]}
QRELS = {"q1": {"c": 1}, "q2": {"x": 1}, "q3": {"y": 1}}


def rankings(table):
    """Case id -> its fused rows."""
    return {
        row["case_id"]: [(item["id"], item["score"]) for item in row["ranked"] or ()]
        for row in table.to_pylist()
    }


def expected(runs, depth=None, **options):
    """What `fuse` must give for flat runs: mapping of case -> rows of text ids."""
    cases = list(dict.fromkeys(case for run in runs for case in run))
    out = {}
    for case in cases:
        rows = [[(doc.encode(), score) for doc, score in run.get(case, [])] for run in runs]
        fused = reference.fuse(rows, **options)
        out[case] = [(doc.decode(), score) for doc, score, _ in fused[:depth]]
    return out


def write_forms(folder):
    """The two runs in every form, some as files in `folder`."""

    def text(name, run):
        lines = [f"{q} Q0 {d} 1 {s!r} t\n" for q, rows in run.items() for d, s in rows]
        (folder / name).write_text("".join(lines))
        return folder / name

    return {
        "mapping": [{q: dict(rows) for q, rows in run.items()} for run in (BM25, DENSE)],
        "flat": [tables.flat(run) for run in (BM25, DENSE)],
        "cut": [tables.flat(run, "dict-int8-string_view", cuts=(1, 2, 3)) for run in (BM25, DENSE)],
        "nested": [tables.nested(run, "large_list", True) for run in (BM25, DENSE)],
        "ids alone": [tables.nested(run, "list_view") for run in (BM25, DENSE)],
        "text": [text("bm25.trec", BM25), text("dense.trec", DENSE)],
        "arrow": [
            tables.write_ipc(tables.flat(BM25), folder / "bm25.arrow"),
            tables.write_ipc(tables.flat(DENSE), folder / "dense.arrow"),
        ],
    }
