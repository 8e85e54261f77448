"""Every Numba option, the on-disk kernel cache, and loads from raw addresses, in one place.

Kernels take addresses and integers rather than arrays of ids, so that one compiled
specialisation serves every Arrow layout, id length and batch size. The loads below read
memory where Arrow put it; with ``NUMBA_DISABLE_JIT=1`` the same names are plain Python, so
that the debug path runs the very code that is compiled otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

import numpy as np
from numba import config, njit, types
from numba.core import caching
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")

CACHE_ENV = "RAGCORE_KERNELS_CACHE"
"""``0`` switches the on-disk cache off; a path puts it there; unset means the default."""

JIT = not getattr(config, "DISABLE_JIT", 0)


def _stamp() -> str:
    """Digest of every source file of this package: an edit to any helper empties the cache."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _candidates() -> list[Path]:
    chosen = os.environ.get(CACHE_ENV, "")
    if chosen == "0":
        return []
    if chosen not in ("", "1"):
        return [Path(chosen)]
    places = [Path(__file__).parent / "__pycache__" / "kernels"]
    if home := os.environ.get("XDG_CACHE_HOME"):
        places.append(Path(home) / "ragcore-kernels")
    else:
        folder = "Library/Caches" if sys.platform == "darwin" else ".cache"
        with contextlib.suppress(RuntimeError):  # no home
            places.append(Path.home() / folder / "ragcore-kernels")
    return places


def _writable() -> Path | None:
    """The first place that can be written, or None: then kernels compile in every process."""
    stamp = _stamp()
    for place in _candidates():
        path = place / stamp
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            continue
        return path
    return None


CACHE_DIR = _writable() if JIT else None
"""Where compiled kernels are kept, or None."""


class _Locator(caching._CacheLocator):  # pyright: ignore[reportPrivateUsage]
    """Points Numba at `CACHE_DIR`; the stamp in the path makes any other check needless."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self._py_file = func.__code__.co_filename
        self._lineno = func.__code__.co_firstlineno

    def get_cache_path(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return str(CACHE_DIR)

    def get_source_stamp(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ""

    def get_disambiguator(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _Impl(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [_Locator]


class _Cache(FunctionCache):
    """A cache that is never a reason to fail: what cannot be read or written is compiled anew."""

    _impl_class = _Impl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kernel from the cache, or None.

        Numba would first register everything that it can type and lower, which takes longer than
        most scores; machine code needs none of that, and whatever compiles later does it then.
        """
        try:
            rtsys.initialize(target_context)  # memory for arrays: all that machine code does need
            return self._load_overload(sig, target_context)
        except Exception:  # a truncated or foreign file raises nearly anything from pickle
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            try:  # most often the index is damaged: start it afresh, then give up quietly
                self.flush()
                super().save_overload(sig, data)
            except Exception:
                self.disable()


def kernel(func: Callable[P, R]) -> Callable[P, R]:
    """Compile `func` on first call: no GIL, no fast-math, cached where a cache can be kept.

    Serial on purpose: the caller splits cases over a thread pool, which is safe from any
    thread and after a fork, where Numba's own parallel regions are not.
    """
    compiled: Any = njit(func, nogil=True, fastmath=False, error_model="numpy")
    if CACHE_DIR is not None:
        compiled._cache = _Cache(func)
    return compiled


def inline(func: Callable[P, R]) -> Callable[P, R]:
    """Compile `func` as a part of the kernels that call it; never cached on its own."""
    return njit(func, nogil=True, fastmath=False, error_model="numpy")


def _load(numba_type: Any, numpy_type: type[np.generic]) -> Callable[[int], Any]:
    """Build ``f(address) -> value`` for one machine type, without any alignment assumed."""
    size = np.dtype(numpy_type).itemsize

    if not JIT:

        def plain(address: int) -> Any:
            return np.frombuffer(ctypes.string_at(int(address), size), numpy_type)[0]

        return plain

    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir  # here, so that a reader of this module need not know it

            kind = context.get_value_type(numba_type)
            pointer = builder.inttoptr(args[0], ir.PointerType(kind))
            return builder.load(pointer, align=1)

        return numba_type(types.int64), codegen

    return load


load_u8 = _load(types.uint8, np.uint8)
load_u16 = _load(types.uint16, np.uint16)
load_u32 = _load(types.uint32, np.uint32)
load_u64 = _load(types.uint64, np.uint64)
load_i8 = _load(types.int8, np.int8)
load_i16 = _load(types.int16, np.int16)
load_i32 = _load(types.int32, np.int32)
load_i64 = _load(types.int64, np.int64)
load_f32 = _load(types.float32, np.float32)
load_f64 = _load(types.float64, np.float64)

_MASK = (1 << 64) - 1

if JIT:

    @inline
    def mul64(a: Any, b: Any) -> Any:
        """Product of two uint64, modulo 2**64."""
        return np.uint64(a) * np.uint64(b)

else:

    def mul64(a: Any, b: Any) -> Any:
        """Product of two uint64, modulo 2**64, without NumPy's overflow warning."""
        return np.uint64((int(a) * int(b)) & _MASK)


def address_of(array: np.ndarray) -> int:
    """Address of the first element of `array`, for kernels that take addresses."""
    return int(array.ctypes.data)


def compiled_count(func: Any) -> int:
    """How many specialisations of a kernel this process holds; more than one is a fault."""
    return len(func.signatures) if hasattr(func, "signatures") else 0
