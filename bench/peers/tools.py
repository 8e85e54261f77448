"""Every tool does one job: a run and judgements on disk -> each query's values and their means.

Started as a program, this is a worker that holds one tool: it imports it, then answers each line
``{"run": ..., "qrels": ...}`` (JSON) with times and means; or does one job, or only the imports.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import IO, Any

from base import MEASURES, Files, Tool


class Ragcore(Tool):
    """Values as a matrix with the ids of its columns; the argument is the number of threads."""

    imports = ("ragcore.score", "ragcore_kernels.ranking")
    reads = ("arrow", "dict", "parquet", "trec")

    def missing(self) -> str:
        return "" if importlib.util.find_spec("ragcore") else "not installed"

    def version(self) -> str:
        return importlib.import_module("ragcore").__version__

    def job(self, files: Files) -> Any:
        scores = self.modules[0].score(
            files["run"], qrels=files["qrels"], measures=MEASURES, threads=int(self.argument or 1)
        )
        run = scores.runs[0]
        return list(scores.means().values()), run.values, run.case_names


def nested(path: str, value: str, kind: type) -> dict[str, dict[str, Any]]:
    """``{query: {document: value}}`` of an Arrow file: the quickest way we found to make one."""
    import numpy as np
    import pyarrow as pa

    table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    query = table["query_id"].to_numpy()
    document = table["doc_id"].to_numpy().tolist()
    number = table[value].to_numpy().astype(kind).tolist()
    cuts = [0, *(np.flatnonzero(query[1:] != query[:-1]) + 1).tolist(), len(query)]
    return {
        query[a]: dict(zip(document[a:b], number[a:b], strict=True))
        for a, b in itertools.pairwise(cuts)
    }


class PytrecEval(Tool):
    """Gives no mean: taken over all judged queries, those that it leaves out counted as 0."""

    package = "pytrec_eval-terrier"
    imports = ("pytrec_eval", "numpy", "pyarrow")
    reads = ("arrow",)
    note = "dicts built from Arrow; RR@10 cut from recip_rank"
    ASKED = frozenset(
        {"ndcg_cut.10", "ndcg", "map", "recip_rank", "recall.5,10,100,1000", "P.5,10",
         "success.1,5,10"}
    )  # fmt: skip
    GIVEN = ("ndcg_cut_10", "ndcg", "map", "recip_rank", "recall_5", "recall_10", "recall_100",
             "recall_1000", "P_5", "P_10", "success_1", "success_5", "success_10")  # fmt: skip

    def job(self, files: Files) -> Any:
        run, qrels = nested(files["run"], "score", float), nested(files["qrels"], "relevance", int)
        found = self.modules[0].RelevanceEvaluator(qrels, self.ASKED).evaluate(run)
        for values in found.values():
            if values["recip_rank"] < 0.1:
                values["recip_rank"] = 0.0
        return [sum(v[n] for v in found.values()) / len(qrels) for n in self.GIVEN], found


class IrMeasures(Tool):
    """Its pytrec_eval provider for all but RR@10."""

    package = "ir_measures"
    imports = ("ir_measures", "numpy", "pyarrow")
    reads = ("arrow",)
    note = "dicts built from Arrow (3 to 5 times as fast as its own readers)"
    exact = False  # its RR@10 comes from a provider that puts ties in another order

    def load(self) -> None:
        super().load()
        self.measures = [self.modules[0].parse_measure(name) for name in MEASURES]

    def job(self, files: Files) -> Any:
        run, qrels = nested(files["run"], "score", float), nested(files["qrels"], "relevance", int)
        means, values = self.modules[0].calc(self.measures, qrels, run)
        return [means[one] for one in self.measures], values


class Ranx(Tool):
    """Values end up in the run, as ranx keeps them; ties stand in no certain order."""

    package = "ranx"
    imports = ("ranx", "numpy", "pyarrow")
    reads = ("arrow",)
    note = "dicts built from Arrow; all threads"
    exact = False
    ASKED = ("ndcg@10", "ndcg", "map", "mrr@10", "recall@5", "recall@10", "recall@100",
             "recall@1000", "precision@5", "precision@10", "hit_rate@1", "hit_rate@5",
             "hit_rate@10")  # fmt: skip

    def job(self, files: Files) -> Any:
        ranx = self.modules[0]
        run = ranx.Run.from_dict(nested(files["run"], "score", float))
        qrels = ranx.Qrels.from_dict(nested(files["qrels"], "relevance", int))
        means = ranx.evaluate(qrels, run, list(self.ASKED), make_comparable=True)
        return [float(means[name]) for name in self.ASKED], run


class TrecEval(Tool):
    """The C program; the argument is its path. It prints four places, read outside the timing."""

    reads = ("trec",)
    note = "a process for each run, all values printed; four places; RR@10 cut from recip_rank"
    tolerance = 5.1e-5

    def missing(self) -> str:
        if not self.argument:
            return "no --trec-eval PATH given"
        return "" if shutil.which(self.argument) else f"no program {self.argument}"

    def load(self) -> None:
        """Nothing to import."""

    def command(self, files: Files) -> list[str]:
        """What is started."""
        asked = [word for name in sorted(PytrecEval.ASKED) for word in ("-m", name)]
        return [self.argument, "-q", "-c", *asked, files["qrels"], files["run"]]

    def job(self, files: Files) -> Any:
        return subprocess.run(self.command(files), check=True, capture_output=True).stdout

    def means(self, result: bytes) -> dict[str, float]:
        reciprocal, means = [], {}
        for line in result.decode().splitlines():
            name, query, value = line.split()
            if query == "all":
                means[name] = float(value)
            elif name == "recip_rank":
                reciprocal.append(float(value))
        means["recip_rank"] = sum(r for r in reciprocal if r >= 0.1) / len(reciprocal)
        return {m: means[name] for m, name in zip(MEASURES, PytrecEval.GIVEN, strict=True)}


def make_tool(name: str, trec_eval: str = "") -> Tool:
    """The tool of a name in `NAMES`."""
    if name.startswith("ragcore-"):
        return Ragcore(name.removeprefix("ragcore-"))
    if name in ("polars", "polars-sort", "duckdb"):
        import tabular  # polars and duckdb, if asked for

        if name == "duckdb":
            return tabular.Duckdb()
        return tabular.Polars("sort" if name == "polars-sort" else "")
    if name == "trec_eval":
        return TrecEval(trec_eval)
    return {"pytrec_eval": PytrecEval, "ir_measures": IrMeasures, "ranx": Ranx}[name]()


NAMES = ("ragcore-1", "ragcore-2", "trec_eval", "pytrec_eval", "ir_measures", "ranx",
         "polars", "polars-sort", "duckdb")  # fmt: skip


def cpu_seconds() -> float:
    """Processor time of this process, all its threads, and the children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def run_once(tool: Tool, files: Files) -> tuple[float, float, dict[str, float]]:
    """Wall and processor seconds of a job, and its means; nothing of it stays.

    A short job is repeated for a tenth of a second; the median counts.
    """
    gc.collect()
    walls, cpus = [], []
    while True:
        cpu, wall = cpu_seconds(), time.perf_counter()
        result = tool.job(files)
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_seconds() - cpu)
        if sum(walls) > 0.1:
            break
        del result
    means = {name: float(value) for name, value in tool.means(result).items()}
    return statistics.median(walls), statistics.median(cpus), means


@contextlib.contextmanager
def clean_stdout() -> Iterator[IO[str]]:
    """A stream for our own lines; whatever a tool prints goes to stderr instead."""
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)
        yield answers


def serve(tool: Tool, answers: IO[str]) -> None:
    """Answer every line of stdin with one line."""
    answers.write(json.dumps({"version": tool.version()}) + "\n")
    for line in sys.stdin:
        try:
            wall, cpu, means = run_once(tool, json.loads(line))
            answers.write(json.dumps({"wall": wall, "cpu": cpu, "means": means}) + "\n")
        except Exception as error:  # of any tool; the others go on
            answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")


def main() -> None:
    """Hold one tool: import it, then serve, or do one job, or nothing more."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--trec-eval", default="", metavar="PATH")
    parser.add_argument("--once", nargs=2, metavar=("RUN", "QRELS"), help="one job, then end")
    parser.add_argument("--import-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tool = make_tool(options.name, options.trec_eval)
    with clean_stdout() as answers:
        tool.load()
        if options.once:
            result = tool.job(dict(zip(("run", "qrels"), options.once, strict=True)))
            answers.write(json.dumps(tool.means(result), default=float) + "\n")
        elif not options.import_only:
            serve(tool, answers)


if __name__ == "__main__":
    main()
