"""Cases about processes, threads, caches, memory and bits: mostly in processes of their own.

No case here looks at a clock: what makes things slow or large is asserted instead.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ragcore
import ragcore_kernels
import reference
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case

CACHE = "RAGCORE_KERNELS_CACHE"
HEAVY = ("numba", "polars", "tantivy", "pandas", "ray")

SCORE = """
import ragcore
run = {f"t{i}": {f"d{j}": float(-(j * 7 % 11)) for j in range(11)} for i in range(50)}
qrels = {t: {"d3": 1, "d5": 2, "d8": 0} for t in run}
scores = ragcore.score(run, qrels=qrels, measures=["AP", "nDCG@5", "Bpref"])
print([scores.mean(name).hex() for name in ("AP", "nDCG@5", "Bpref")])
"""


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def expected_output(folder: Path) -> str:
    return output_of(shapes.python(SCORE, folder, name="plain.py"))


@handles("RC-141")
def read_only_package_without_home(case: Case, folder: Path) -> None:
    """A file where a folder would have to be stops everyone, the superuser too."""
    copies = folder / "packages"
    for module in (ragcore, ragcore_kernels):
        home = Path(module.__path__[0])
        copy = shutil.copytree(
            home, copies / home.name, ignore=shutil.ignore_patterns("__pycache__")
        )
        (copy / "__pycache__").write_bytes(b"")
    blocker = folder / "file"
    blocker.write_bytes(b"")
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", CACHE)}
    env |= {"HOME": f"{blocker}{case['input']['env']['HOME']}", "PYTHONPATH": str(copies)}
    script = shapes.write_text(folder / "script.py", SCORE)
    command = [sys.executable, "-B", str(script)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert output_of(done) == expected_output(folder)
    assert (copies / "ragcore_kernels" / "__pycache__").is_file()


THREADS = (
    SCORE
    + """
import sys
from concurrent.futures import ThreadPoolExecutor

def once(_):
    scores = ragcore.score(run, qrels=qrels, measures=["AP"], threads=2)
    return scores.mean("AP").hex()

with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    print(len(set(pool.map(once, range(64)))))
"""
)


@handles("RC-142")
def calls_from_several_threads(case: Case, folder: Path) -> None:
    given = case["input"]
    layer = {"NUMBA_THREADING_LAYER": given["threading_layer"], "NUMBA_NUM_THREADS": "2"}
    done = shapes.python(THREADS, folder, given["threads"], **layer)
    assert output_of(done) == expected_output(folder) + "1\n"


FORK = (
    SCORE
    + """
import os
child = os.fork()
again = ragcore.score(run, qrels=qrels, measures=["AP"], threads=2).mean("AP")
if child == 0:
    os._exit(0 if again == scores.mean("AP") else 1)
print(os.waitpid(child, 0)[1])
"""
)


ONE_KERNEL = """
import numpy as np
from ragcore_kernels.resample import exact_sum
print(exact_sum(np.array([1e300, 1.0, -1e300])).hex())
"""
"""One kernel is enough where eight processes fill one cache: they all keep theirs in one way."""


@handles("RC-143")
def forks_and_a_shared_cache(case: Case, folder: Path) -> None:
    assert output_of(shapes.python(FORK, folder)) == expected_output(folder) + "0\n"
    cache, plain = folder / "cache", (1.0).hex() + "\n"
    script = shapes.write_text(folder / "one.py", ONE_KERNEL)
    env = shapes.environment(**{CACHE: str(cache)})
    children = [
        subprocess.Popen([sys.executable, script], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    while not any(cache.rglob("*.nbi")) and any(child.poll() is None for child in children):
        time.sleep(0.01)  # until the first child begins to write the cache
    children[0].kill()
    outputs = [child.communicate()[0] for child in children]
    assert all(output == plain for output in outputs[1:])
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for _ in range(2):
        again = shapes.python(ONE_KERNEL, folder, **{CACHE: str(cache)})
        assert output_of(again) == plain


INFERRED = """
import ragcore
from ragcore_kernels import _jit
run = {"t": {"a": 3.0, "b": 2.0, "c": 1.0}}
qrels = {"t": {"a": 0, "b": 1, "c": 1}}
print(_jit.CACHE_DIR, ragcore.score(run, qrels=qrels, measures=["infAP"]).mean("infAP").hex())
"""


@handles("RC-144")
def edits_reach_the_kernels(case: Case, folder: Path) -> None:
    home = Path(ragcore_kernels.__path__[0])
    copy = folder / "packages" / home.name
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(copy.parent), shapes.environment()["PYTHONPATH"]])
    ranked, grades = ["a", "b", "c"], {"a": 0, "b": 1, "c": 1}

    def run() -> tuple[str, float]:
        env = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        cache, value = output_of(shapes.python(INFERRED, folder, **env)).split()
        return cache, float.fromhex(value)

    first, _ = run()
    assert run()[0] == first
    before = run()[1]
    assert shapes.near(before, reference.score("infAP", ranked, grades))
    (helper,) = [p for p in copy.glob("*.py") if "\nINFAP_EPSILON = 1e-5\n" in p.read_text()]
    helper.write_text(helper.read_text().replace("INFAP_EPSILON = 1e-5", "INFAP_EPSILON = 0.5"))
    second, after = run()
    assert second != first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "INFAP_EPSILON", 0.5)
        assert shapes.near(after, reference.score("infAP", ranked, grades))
    assert after != before


NANS = """
import math
import numpy as np
from ragcore_kernels._jit import kernel

@kernel
def count(values):
    n = 0
    for value in values:
        if math.isnan(value):
            n += 1
    return n

print(count(np.array([1.0, math.nan, math.nan])))
"""

KERNELS = """
import importlib, pkgutil
import ragcore_kernels
kernels = {}
for info in pkgutil.iter_modules(ragcore_kernels.__path__):
    module = importlib.import_module(f"ragcore_kernels.{info.name}")
    for name, value in vars(module).items():
        if hasattr(value, "signatures") and hasattr(value, "targetoptions"):
            kernels[f"{value.py_func.__module__}.{name}"] = value
"""


@handles("RC-145")
def not_a_number_is_seen(case: Case, folder: Path) -> None:
    assert output_of(shapes.python(NANS, folder)) == f"{case['expected']['count']}\n"
    options = "print({bool(each.targetoptions.get('fastmath')) for each in kernels.values()})"
    assert output_of(shapes.python(KERNELS + options, folder, name="options.py")) == "{False}\n"


@handles("RC-146")
def thread_count_changes_no_bit(case: Case, folder: Path) -> None:
    n, rng = 40_003, np.random.default_rng(146)
    topics = np.char.add("q", np.repeat(np.arange(n), 3).astype(str))
    docs = np.char.add("d", rng.permuted(np.tile(np.arange(3), (n, 1)), axis=1).ravel().astype(str))
    run = pa.table({"query_id": topics, "doc_id": docs, "score": rng.normal(size=3 * n)})
    qrels = pa.table({"query_id": topics, "doc_id": docs, "relevance": rng.integers(0, 3, 3 * n)})
    large = "utility_123456789.1,-98765432.7,55555555.5,0"
    names = ["AP", "nDCG@10", "RR", "infAP", large]
    seen = []
    for threads in case["input"]["threads"]:
        scores = ragcore.score(run, qrels=qrels, measures=names, threads=threads, names=["r"])
        table = scores.table().sort_by([("measure", "ascending"), ("case_id", "ascending")])
        values = table["value"].to_numpy(zero_copy_only=False)
        seen.append((values.tobytes(), [scores.mean(name).hex() for name in names]))
    assert seen[0] == seen[1]
    assert abs(float.fromhex(seen[0][1][-1])) > 1e6


@handles("RC-147")
def small_things_load_little(case: Case, folder: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "ragcore", "--help"]
    done = subprocess.run(
        command, env=shapes.environment(), cwd=folder, capture_output=True, text=True, check=False
    )
    assert "score" in output_of(done)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ragcore" in loaded
    assert not loaded & set(HEAVY)
    code = f"import sys, ragcore; print(sorted(set({HEAVY}) & set(sys.modules)))"
    assert output_of(shapes.python(code, folder)) == "[]\n"
    code = SCORE + "import sys; print(sorted({'polars', 'tantivy', 'pandas'} & set(sys.modules)))"
    assert output_of(shapes.python(code, folder, name="used.py")).splitlines()[-1] == "[]"


@handles("RC-148")
def kernels_can_be_warmed(case: Case, folder: Path) -> None:
    """That every release starts cold is RC-144's check: the cache is named by the source.

    The cache of all other tests is warmed: what they need is compiled once, here or there.
    """
    assert "--warm" in output_of(shapes.cli("doctor", "--help", cwd=folder))
    output_of(shapes.cli("doctor", "--warm", cwd=folder))
    watch = (
        "from ragcore_kernels import _jit\nmade = []\n"
        "_jit._Cache.save_overload = lambda *_: made.append(1)\n"
    )
    done = shapes.python(f"{watch}{SCORE}print(len(made))", folder)
    assert output_of(done).splitlines()[-1] == "0"


SPECIALISATIONS = """
import numpy as np, pandas as pd, polars as pl, pyarrow as pa, sys
import ragcore
topics, docs = ["t1", "t1", "t2"] * 2, ["a", "b", "a", "c", "d", "b"]
values, grades = np.arange(6.0), np.array([0, 1, 2, 0, 1, 1])
read_only = pa.array(values).to_numpy()
assert not read_only.flags.writeable
for score in (pa.array(values), pa.array(read_only), pa.array(values.astype("f4"))):
    run = pa.table({"query_id": topics, "doc_id": docs, "score": score})
    qrels = pa.table({"query_id": topics, "doc_id": docs, "relevance": grades})
    for form in (lambda t: t, lambda t: pa.concat_tables([t.slice(0, 2), t.slice(2)]),
                 lambda t: t.slice(1), pl.from_arrow, lambda t: t.to_pandas()):
        for threads in (1, 2):
            ragcore.score(form(run), qrels=form(qrels), measures=["AP", "nDCG@3"], threads=threads)
ragcore.score({"t1": {"a": 1.0}}, qrels={"t1": {"a": 1}}, measures=["AP"])
"""


@handles("RC-067")
def read_only_arrays(case: Case, folder: Path) -> None:
    """One specialisation a kernel, whatever the memory. Copies are not counted here."""
    count = (
        "print({name: len(k.signatures) for name, k in kernels.items() if len(k.signatures) > 1})"
    )
    done = shapes.python(SPECIALISATIONS + KERNELS + count, folder)
    assert output_of(done).splitlines()[-1] == "{}"


@handles("RC-149")
def only_results_remain(case: Case, folder: Path) -> None:
    """By proxy: what is kept of a run in twenty chunks is one value a topic and measure.

    Searching in chunks has its own test beside the search itself.
    """
    n, k, chunks = 1_000, 100, 20
    rng = np.random.default_rng(149)
    docs = np.char.add("d", rng.integers(0, 10**6, (n, k)).astype(str)).ravel()
    topics = np.repeat(np.char.add("q", np.arange(n).astype(str)), k)
    qrels = pa.table({"query_id": topics[::k], "doc_id": docs[::k], "relevance": np.ones(n, int)})
    names = ["nDCG@10", f"R@{k}"]

    def kept(parts: int) -> tuple[int, Any]:
        table = pa.table(
            {"query_id": topics, "doc_id": docs, "score": -np.arange(n * k, dtype=float)}
        )
        step = math.ceil(table.num_rows / parts)
        table = pa.concat_tables([table.slice(i, step) for i in range(0, table.num_rows, step)])
        assert table["doc_id"].num_chunks == parts
        before = pa.total_allocated_bytes()
        scores = ragcore.score(table, qrels=qrels, measures=names, duplicates="first", names=["r"])
        grown = pa.total_allocated_bytes() - before
        alive = weakref.ref(table)
        assert scores.audits[0].counts["rows"] == n * k  # made from the run, once
        del table
        gc.collect()
        assert alive() is None
        return grown, scores

    (whole, one), (split, many) = kept(1), kept(chunks)
    assert many.table().num_rows == n * len(names)
    assert shapes.bits(one) == shapes.bits(many)
    bound = n * len(names) * 200  # bytes; the run itself holds n * k rows
    assert whole <= bound
    assert split <= bound
