"""Compare the scores of every formula that bm25s knows with bm25s's own, document by document.

python bench/peers/lexical_formulas.py --update bench/README.md

bm25s gives a document something for terms that it lacks, in bm25l and bm25+; that is taken off
here, since ragcore counts the terms of a document only.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import bm25s
from report import publish, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from passages import Text, make_text, questions

from ragcore_kernels.bm25 import Collection, Scorer

METHODS = {"lucene": 0.0, "robertson": 0.0, "atire": 0.0, "bm25l": 0.5, "bm25+": 1.0}
"""Formulas and their delta."""
K1, B = 1.2, 0.75


def difference(text: Text, method: str, asked: list[list[int]]) -> tuple[float, int]:
    """Greatest relative difference of a score, and how many scores there were."""
    delta = METHODS[method]
    n_docs, n_terms = text.starts.size - 1, text.offsets.size - 1
    theirs = bm25s.BM25(method=method, k1=K1, b=B, delta=delta, backend="numpy")
    codes = [text.words(d) for d in range(n_docs)]
    theirs.index((codes, {f"w{t}": t for t in range(n_terms)}), show_progress=False)
    collection = Collection(text.offsets, text.docs, text.tfs, text.lengths)
    own = {"delta": delta} if delta else {}
    scorer = Scorer(collection, variant=method, k1=K1, b=B, **own)
    worst, count = 0.0, 0
    for words in asked:
        expected = theirs.get_scores_from_ids(words)
        hits = scorer.search([0, len(words)], words, n_docs)
        for doc, score in zip(hits.docs[0, : hits.counts[0]], hits.scores[0], strict=False):
            parts = scorer.explain(words, int(doc)).parts
            lacking = sum(p.idf for p in parts if p.tf == 0)
            if method == "bm25l":
                lacking *= (K1 + 1) * delta / (K1 + delta)
            else:
                lacking *= delta
            value = float(expected[doc]) - lacking
            worst = max(worst, abs(value - float(score)) / max(abs(float(expected[doc])), 1e-9))
            count += 1
    return worst, count


def main() -> None:
    """Print the table; with --update also put it into a Markdown file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=3_000, help="how many random passages")
    parser.add_argument("--update", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    text = make_text(options.passages)
    asked = [words for n in (1, 3, 13) for words in questions(text, n, 6)]
    rows = []
    for method in METHODS:
        worst, count = difference(text, method, asked)
        rows.append([method, f"{count:,}", f"{worst:.0e}"])
    head = ["formula", "scores compared", "greatest relative difference from bm25s"]
    publish("lexical formulas", table(head, rows, True), options.update)


if __name__ == "__main__":
    main()
