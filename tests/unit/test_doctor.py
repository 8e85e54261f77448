"""What `doctor` says, and that warming up leaves nothing to compile."""

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.shapes import environment
from ragcore import doctor, provenance

DATA = Path(__file__).resolve().parents[2] / "data"
WARM = """
import importlib, pkgutil, sys
import ragcore_kernels
from ragcore.doctor import warm_up
from ragcore_kernels._jit import JIT, compiled_count

def counts():
    out = {}
    for found in pkgutil.iter_modules(ragcore_kernels.__path__):
        home = importlib.import_module(f"ragcore_kernels.{found.name}")
        for name, value in vars(home).items():
            if hasattr(value, "py_func") and value.py_func.__module__ == home.__name__:
                out[f"{found.name}.{name}"] = compiled_count(value)
    return out

print(warm_up())
before = counts()
from pathlib import Path
from ragcore import diagnose, score
scores = score("run.trec", qrels="qrels.txt")
scores.rows(), scores.table(), scores.audits
for suite in sys.argv[1:]:
    runs = sorted(Path(suite, "runs").glob("*.arrow"))
    scores = score(runs, suite=suite)
    scores.rows(), scores.table(), scores.audits
    diagnose(runs, suite=suite)
after = counts()
print(sorted(name for name in after if after[name] > before[name]))
"""


def test_examine__names_versions_threads_and_cache():
    lines = dict(line.split(None, 1) for line in doctor.examine().splitlines() if line[:1] != "k")
    for name in ("python", "numpy", "numba", "pyarrow", "click"):
        assert lines[name][0].isdigit()
    assert int(lines["threads"]) >= 1
    assert "kernel cache" in doctor.examine()


def test_provenance__names_every_package_and_the_machine():
    found = provenance.versions()
    assert list(found) == ["python", *provenance.PACKAGES]
    about = provenance.machine()
    assert about["processors"] >= 1
    assert about["memory_bytes"] is None or about["memory_bytes"] > 2**20


@pytest.mark.parametrize("place", ["set", "off"])
def test_examine__says_where_kernels_are_kept(place, tmp_path):
    code = "from ragcore.doctor import examine; print(examine())"
    where = str(tmp_path / "kept") if place == "set" else "0"
    env = environment(RAGCORE_KERNELS_CACHE=where)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("kernel cache")]
    assert (where if place == "set" else "none: no folder can be written") in said or "off" in said


def test_warm_up__leaves_nothing_to_compile_for_text_runs(tmp_path):
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\n")
    (tmp_path / "qrels.txt").write_text("q1 0 b 1\n")
    suites = [str(DATA / name) for name in ("ka4", "mosaic")]
    done = subprocess.run([sys.executable, "-c", WARM, *suites], env=environment(), cwd=tmp_path,
                          capture_output=True, text=True, check=True)  # fmt: skip
    said, rest = done.stdout.splitlines()
    assert said.startswith("kernels ready after ")
    assert rest == "[]"
