"""Compilation: where kernels are kept, damage to it, raw loads, one specialisation each."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ragcore_kernels
from ragcore_kernels import _jit
from ragcore_kernels._jit import JIT

PROBE = """
import numpy as np
from ragcore_kernels import _jit, ids
codes, offsets, order = np.array([1, 0, 1, -1]), np.zeros(3, np.int64), np.zeros(4, np.int64)
ids.group(codes, offsets, order)
kept = sorted(p.name for p in _jit.CACHE_DIR.glob("*.nbi")) if _jit.CACHE_DIR else []
hits = sum(ids.group.stats.cache_hits.values()) if _jit.CACHE_DIR else 0
print(_jit.CACHE_DIR, len(kept), hits, order[:3].tolist(), offsets.tolist())
"""

compiled = pytest.mark.skipif(not JIT, reason="nothing is compiled")


def probe(**extra):
    home = str(Path(ragcore_kernels.__path__[0]).parent)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RAGCORE_", "NUMBA_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE], env=env | {"PYTHONPATH": home} | extra,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    folder, kept, hits, rest = done.stdout.split(None, 3)
    assert rest == "[1, 0, 2] [0, 1, 3]\n"
    assert done.stderr == ""
    return folder, int(kept), int(hits)


@compiled
def test_cache__in_a_folder_of_ones_own_is_used_again_and_survives_damage(tmp_path):
    place = {"RAGCORE_KERNELS_CACHE": str(tmp_path / "kept")}
    folder, kept, hits = probe(**place)
    assert folder.startswith(str(tmp_path / "kept"))
    assert (kept, hits) == (1, 0)
    assert probe(**place) == (folder, 1, 1)
    for file in Path(folder).glob("*.nb?"):
        file.write_bytes(file.read_bytes()[:40])
    assert probe(**place)[:2] == (folder, 1)
    assert probe(**place)[2] == 1
    for file in Path(folder).glob("*.nbi"):
        file.write_bytes(b"")
    assert probe(**place)[:2] == (folder, 1)


@compiled
def test_cache__can_be_switched_off():
    assert probe(RAGCORE_KERNELS_CACHE="0") == ("None", 0, 0)


@compiled
def test_cache__that_cannot_be_written_is_none(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert probe(RAGCORE_KERNELS_CACHE=str(blocked)) == ("None", 0, 0)


def test_plain_python__gives_the_same():
    assert probe(NUMBA_DISABLE_JIT="1") == ("None", 0, 0)


def test_loads__of_any_alignment_and_type():
    text = np.frombuffer(bytes(range(200, 256)) + b"tail of the buffer", np.uint8)
    names = {"load_u8": np.uint8, "load_u16": np.uint16, "load_u32": np.uint32,
             "load_u64": np.uint64, "load_i8": np.int8, "load_i16": np.int16,
             "load_i32": np.int32, "load_i64": np.int64, "load_f32": np.float32,
             "load_f64": np.float64}  # fmt: skip
    from numba import njit

    for name, kind in names.items():
        load = getattr(_jit, name)
        call = njit(lambda address, load=load: load(address)) if JIT else load
        for shift in (0, 1, 3):
            expected = np.frombuffer(text.tobytes(), kind, 1, shift)[0]
            found = call(_jit.address_of(text) + shift)
            assert np.array([found], kind).tobytes() == expected.tobytes(), (name, shift)


def test_mul64__wraps_without_a_warning():
    for a, b in ((2**64 - 1, 2**64 - 1), (2**63, 3), (0, 5), (0x9E3779B97F4A7C15, 7)):
        assert int(_jit.mul64(np.uint64(a), np.uint64(b))) == a * b % 2**64


def test_address_of__is_that_of_the_first_element():
    array = np.arange(5)
    assert _jit.address_of(array[2:]) == _jit.address_of(array) + 2 * array.itemsize


def kernels():
    for module in pkgutil.iter_modules(ragcore_kernels.__path__):
        home = importlib.import_module(f"ragcore_kernels.{module.name}")
        for name, value in vars(home).items():
            if hasattr(value, "py_func") and value.py_func.__module__ == home.__name__:
                yield f"{module.name}.{name}", value


@compiled
def test_kernels__are_compiled_without_fast_math_and_hold_no_gil():
    found = dict(kernels())
    assert len(found) > 20
    for name, one in found.items():
        assert one.targetoptions.get("nogil") is True, name
        assert not one.targetoptions.get("fastmath"), name
        assert not one.targetoptions.get("parallel"), name
        assert one.py_func.__doc__ or name.split(".")[1].startswith("_"), name


def test_compiled_count__of_what_is_no_kernel_is_0():
    assert _jit.compiled_count(len) == 0
