"""The house rules: files, functions, docs, versions, names, and one specialisation a kernel."""

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import click
import pyarrow as pa
import pytest

import ragcore
import ragcore_kernels
import tables
from ragcore import score
from ragcore.cli import main
from ragcore.measures import registry
from ragcore_kernels._jit import JIT, compiled_count

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ragcore", "kernels/ragcore_kernels")
SOURCES = sorted(
    path for folder in ("ragcore", "kernels", "tests", "bench", "data")
    for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts
)  # fmt: skip
OWN = [path for path in SOURCES if path.is_relative_to(ROOT / "ragcore")]
LINES, FUNCTION = 400, 60

LONG_FILES = {
    "tests/golden/test_ka4.py": "golden values of one suite, kept together",
}
LONG_FUNCTIONS = {
    "ragcore/score.py:score": "the documented door: mostly its parameters",
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def functions(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


# --- files and functions


def test_files__are_short_and_say_their_one_job():
    long = {name_of(p): n for p in SOURCES if (n := len(p.read_text("utf-8").splitlines())) > LINES}
    assert long.keys() <= LONG_FILES.keys(), long
    for path in SOURCES:
        if path.name != "__init__.py" or path.is_relative_to(ROOT / "ragcore"):
            assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), name_of(path)


def code_lines(node):
    """Lines of a function without its docstring."""
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant):
        body = body[1:]
    if not body:
        return 1
    return body[-1].end_lineno - body[0].lineno + 1


def test_functions__of_the_engine_are_short():
    long = {
        f"{name_of(path)}:{node.name}": n
        for path in OWN for node in functions(path) if (n := code_lines(node)) > FUNCTION
    }  # fmt: skip
    assert long.keys() <= LONG_FUNCTIONS.keys(), long


def modules():
    for package in (ragcore, ragcore_kernels):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def test_docs__of_every_public_name():
    bare = []
    for module in modules():
        assert module.__doc__, module.__name__
        for name, value in vars(module).items():
            value = getattr(value, "py_func", value)
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if isinstance(value, click.Command):
                continue
            if getattr(value, "__name__", "") == "<lambda>":
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                bare += [] if inspect.getdoc(value) else [f"{module.__name__}.{name}"]
            if inspect.isclass(value):
                bare += [
                    f"{module.__name__}.{name}.{part}" for part, member in vars(value).items()
                    if inspect.isfunction(member) and not part.startswith("_")
                    and member.__name__ != "<lambda>"
                    and not inspect.getdoc(member)
                ]  # fmt: skip
    assert bare == []


def test_docs__of_kernels_name_every_parameter():
    missing = []
    for module in modules():
        if not module.__name__.startswith("ragcore_kernels."):
            continue
        for name, value in vars(module).items():
            func = getattr(value, "py_func", None)
            cached = type(getattr(value, "_cache", None)).__name__ == "_Cache"
            if func is None or func.__module__ != module.__name__ or not cached or name[0] == "_":
                continue
            doc = inspect.getdoc(func) or ""
            if "Parameters" not in doc:
                missing += [] if len(inspect.signature(func).parameters) < 3 else [name]
                continue
            for part in inspect.signature(func).parameters:
                listed = re.search(rf"\b{part}\b", doc)
                ranges = "..." in doc or "The rest" in doc or "as `" in doc or "as in" in doc
                if not listed and not ranges:
                    missing.append(f"{name}: {part}")
    assert missing == []


# --- versions


def project(path):
    return tomllib.loads((ROOT / path).read_text("utf-8"))["project"]


def test_versions__are_in_step():
    engine, kernels = project("pyproject.toml"), project("kernels/pyproject.toml")
    assert engine["version"] == kernels["version"]
    assert ragcore.__version__ == ragcore_kernels.__version__ == engine["version"]
    assert f"ragcore-kernels=={engine['version']}" in engine["dependencies"]
    assert [re.split(r"[<>=]", d)[0] for d in kernels["dependencies"]] == ["numpy", "numba"]


def test_packages__list_every_folder():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    listed, data = tool["packages"], set(tool["package-dir"])  # suites, which are no code
    found = {
        p.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for p in OWN
        if p.name == "__init__.py"
    }
    assert set(listed) - data == found
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()


# --- names


def test_measures__are_known_to_explain_and_nobody_shares_a_name():
    names = [n.lower() for d in registry.definitions() for n in (d.name, *d.aliases)]
    assert len(names) == len(set(names))
    listed = [d.name for d in registry.definitions()]
    assert len(listed) == len(set(listed))


def test_options__have_help_and_no_two_a_letter():
    for command in [main, *main.commands.values()]:
        letters = [opt for p in command.params for opt in p.opts if re.fullmatch(r"-\w", opt)]
        assert len(letters) == len(set(letters))
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{command.name} {option.name}"
                assert option.help.endswith("."), f"{command.name} {option.name}"


def test_verbs__are_listed_and_load():
    for name in ragcore.__all__:
        assert getattr(ragcore, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ragcore.nothing  # noqa: B018


def test_architecture__lists_the_files_that_exist():
    page = ROOT / "ARCHITECTURE.md"
    if not page.is_file():
        pytest.skip("ARCHITECTURE.md is not written yet")
    said = page.read_text("utf-8")
    for path in SOURCES:
        inside = any(path.is_relative_to(ROOT / package) for package in PACKAGES)
        if inside and path.name != "__init__.py":
            assert path.name in said, f"{name_of(path)} is not on the page"
    for name in re.findall(r"\b([a-z_]+\.py)\b", said):
        assert any(path.name == name for path in SOURCES) or (ROOT / name).is_file(), (
            f"{name} is gone"
        )


PATHS = r"(?<![\w.])/(?:home|root|tmp|mnt|Users)/"  # of somebody's machine


def test_texts__name_no_path_of_a_machine():
    for path in [*SOURCES, *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.toml")]:
        found = re.search(PATHS, path.read_text("utf-8"))
        assert found is None or path == Path(__file__).resolve(), f"{name_of(path)}: {found}"


# --- kernels


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation_after_mixed_scoring(tmp_path):
    run, qrels = tables.world(8, n_cases=6, depth=9)
    (tmp_path / "run").write_text("q Q0 a 1 1 t\nq Q0 b 1 1 t\n")
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    ranked = {case: rows for case, rows in run.items() if len({d for d, _ in rows}) == len(rows)}
    cases = pa.table({
        "case_id": list(qrels), "evidence": [
            [{"doc_id": d, "relevance": g, "required": g > 0} for d, g in docs.items()]
            for docs in qrels.values()
        ],
    })  # fmt: skip
    suite = tables.write_suite(tmp_path / "suite", cases)
    names = ["AP", "11pt_avg", "nDCG(gains={1: 2})@3", "R@5", "nDCG(judged_only=True)"]
    for kind in (
        "string",
        "large_string",
        "string_view",
        "dict-int8-string",
        "dict-int32-string_view",
    ):
        for table in (tables.flat(run, kind, cuts=(3, 3, 9)), tables.flat(run, kind).slice(1)):
            for options in (
                {},
                {"duplicates": "max", "drop_identical_ids": True},
                {"max_depth": 3},
            ):
                scores = score(table, qrels=qrels, measures=names, **options)
                assert scores.audits
                assert scores.table().num_rows
    for table in (tables.nested(ranked), tables.nested(ranked, "large_list_view", True)):
        score(table, suite=suite, measures=[*names, "retrieval.coverage"]).summary(["case_id"])
        score(
            [table, tmp_path / "run"], qrels=tables.judged(qrels | {"q": {"a": 1}}), measures=names
        )
    score(tmp_path / "run", qrels=tmp_path / "qrels", measures=names, normalize_ids="nfc")
    score({"q": {"a": 1.0}, "p": {}}, qrels={"q": {"a": 1}, "p": {}}, measures=names)
    many = {}
    for module in modules():
        for name, value in vars(module).items():
            own = getattr(getattr(value, "py_func", None), "__module__", "") == module.__name__
            cached = type(getattr(value, "_cache", None)).__name__ == "_Cache"
            if own and cached and compiled_count(value) > 1:
                many[f"{module.__name__}.{name}"] = value.signatures
    assert many == {}
