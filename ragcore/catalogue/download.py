"""A file from its official source: resumed where it stopped, and whole or not there.

What has come so far lies beside the target as `FILE.part`; the target appears once its checksum is
right. Servers that do not resume send the file from its start.
"""

from __future__ import annotations

import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from ragcore import __version__
from ragcore.errors import InputError, RagcoreError
from ragcore.progress import Progress, no_progress

TRIES = 4
"""Attempts without any byte of progress after which a download gives up."""
_BLOCK = 1 << 18
_TIMEOUT = 30.0
_WAIT = 1.0


def download(
    url: str, target: Path, sha256: str, size: int, *, progress: Progress = no_progress,
    tries: int = TRIES, wait: Callable[[float], None] = time.sleep,
) -> Path:  # fmt: skip
    """Bring a file from `url` to `target`, unless it is there already.

    Parameters
    ----------
    sha256, size : what it must be: hexadecimal digest, bytes.
    progress : called with the file's name, the bytes that have come and all of them.
    tries, wait : attempts without progress, and what sleeps between them, seconds.

    Raises
    ------
    InputError
        If what came is not that file; the part is removed, so that the next try starts anew.
    RagcoreError
        If the source cannot be reached; what came is kept, to go on from.
    """
    if is_whole(target, sha256, size):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            target.parent, error.strerror or str(error), "a folder to write to"
        ) from None
    part = target.with_name(f"{target.name}.part")
    with _alone(part):
        _fetch(url, part, size, progress, tries, wait)
        _finish(url, part, target, sha256, size)
    return target


def is_whole(path: Path, sha256: str, size: int) -> bool:
    """Whether a file is there, with the size and the digest that it must have."""
    return path.is_file() and path.stat().st_size == size and digest_of(path) == sha256


def digest_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch(
    url: str, part: Path, size: int, progress: Progress, tries: int, wait: Callable[[float], None]
) -> None:
    """Bring bytes until all have come."""
    left, reason = tries, ""
    while left:
        have = part.stat().st_size if part.is_file() else 0
        if have >= size:
            return
        try:
            _append(url, part, have, size, progress)
            reason = "it ended early"
        except urllib.error.HTTPError as error:
            reason = f"HTTP {error.code} {error.reason}"
            if error.code == 416:  # the part is none of what is there now
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                break
        except (OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        moved = (part.stat().st_size if part.is_file() else 0) > have
        left = tries if moved else left - 1
        if left and not moved:
            wait(_WAIT * 2 ** (tries - left - 1))
    have = part.stat().st_size if part.is_file() else 0
    if have < size:
        raise RagcoreError(
            f"{url}: {reason}; {have:,} of {size:,} bytes have come\n  hint: run it again to go on "
            "from there, or put the file where the suite looks: ragcore suite show NAME"
        )


def _append(url: str, part: Path, have: int, size: int, progress: Progress) -> None:
    """One request; what it sends goes to the end of the part."""
    headers = {"User-Agent": f"ragcore/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        _refuse_other(url, part, answer, size)
        resumed = answer.status == 206 and _begins_at(answer, have)
        with part.open("ab" if resumed else "wb") as stream:
            _copy(answer, stream, have if resumed else 0, size, part.stem, progress)


def _refuse_other(url: str, part: Path, answer: Any, size: int) -> None:
    """Refuse what says of itself that it is another file: a page of a portal, one compressed."""
    said = answer.headers.get("Content-Length", "")
    if answer.status == 206:
        said = answer.headers.get("Content-Range", "").rpartition("/")[2]
    coding = answer.headers.get("Content-Encoding", "identity")
    found = f"a file of {int(said):,} bytes" if said.isdecimal() and int(said) != size else ""
    if coding not in ("identity", ""):
        found = f"the file in another encoding, {coding}"
    if found:
        kind = answer.headers.get_content_type()
        part.unlink(missing_ok=True)
        raise InputError(
            url, f"{found} ({kind})", f"{size:,} bytes",
            "the source has changed, or something stands between: nothing of it was kept",
        )  # fmt: skip


def _begins_at(answer: Any, have: int) -> bool:
    said = answer.headers.get("Content-Range", "")
    return said.replace(" ", "").startswith(f"bytes{have}-")


def _copy(
    answer: Any, stream: IO[bytes], have: int, size: int, name: str, progress: Progress
) -> None:
    """Copy, but never more than one block beyond the size that is wanted."""
    progress(name, have, size)
    while have <= size and (block := answer.read(_BLOCK)):
        stream.write(block)
        have += len(block)
        progress(name, min(have, size), size)


def _finish(url: str, part: Path, target: Path, sha256: str, size: int) -> None:
    """Give a part that is right its name; remove one that is not."""
    found, length = digest_of(part), part.stat().st_size
    if (found, length) != (sha256, size):
        part.unlink()
        raise InputError(
            url, f"a file of {length:,} bytes, sha256 {found[:12]}…",
            f"{size:,} bytes, sha256 {sha256[:12]}…",
            "the source has changed, or something stands between: nothing of it was kept",
        )  # fmt: skip
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(target)


@contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Keep a second download of the same file away; a lock dies with its process."""
    lock = part.with_name(f".{part.name}.lock")
    try:
        held = lock.open("w")
    except OSError as error:
        raise InputError(
            lock.parent, error.strerror or str(error), "a folder to write to"
        ) from None
    with held as stream:
        try:
            import fcntl
        except ImportError:  # no such locks here
            yield
            return
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RagcoreError(f"{part} is being downloaded by another process") from None
        yield
    lock.unlink(missing_ok=True)
