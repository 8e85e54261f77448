"""Servers that send something else: never taken for the file, and said in one sentence."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from conformance.shapes import environment
from ragcore.catalogue.download import download
from ragcore.errors import InputError, RagcoreError
from served import Server

BODY = bytes(range(256)) * 4_000
SIZE = len(BODY)
SHA = hashlib.sha256(BODY).hexdigest()


class Odd(Server):
    """A server that answers with whatever `send` writes."""

    def __init__(self, send):
        super().__init__(BODY)
        self.send = send

    def answer(self, to):
        self.asked.append(to.headers.get("Range"))
        self.send(to)
        to.close_connection = True


def reply(to, body, status=200, length: int | None = -1, **headers):
    """Send an answer; `length` -1 = that of the body, None = it does not say."""
    to.send_response(status)
    for name, value in headers.items():
        to.send_header(name.replace("_", "-"), value)
    if length is not None:
        to.send_header("Content-Length", str(len(body) if length < 0 else length))
    to.end_headers()
    to.wfile.write(body)


@pytest.fixture
def bring(tmp_path):
    made = []
    target = tmp_path / "data" / "corpus.tgz"
    waits = []

    def call(send):
        server = Odd(send)
        made.append(server)
        return server, lambda: download(server.url, target, SHA, SIZE, wait=waits.append)

    call.target, call.part, call.waits = target, target.with_name("corpus.tgz.part"), waits
    yield call
    for server in made:
        server.stop()


PAGE = b"<html>please log in</html>"


@pytest.mark.parametrize(
    ("send", "said"),
    [
        (lambda to: reply(to, PAGE, Content_Type="text/html"),
         r"a file of 26 bytes \(text/html\); expected 1,024,000 bytes"),
        (lambda to: reply(to, BODY + PAGE), "a file of 1,024,026 bytes"),
        (lambda to: reply(to, gzip.compress(BODY), Content_Encoding="gzip"),
         "another encoding, gzip"),
        (lambda to: reply(to, BODY[:9], 206, Content_Range="bytes 0-8/9"), "a file of 9 bytes"),
    ],
)  # fmt: skip
def test_server__that_sends_another_file_is_asked_once_and_nothing_is_kept(bring, send, said):
    server, go = bring(send)
    with pytest.raises(InputError, match=said):
        go()
    assert len(server.asked) == 1
    assert not bring.waits
    assert not bring.part.exists()
    assert not bring.target.exists()


def test_server__whose_page_comes_in_place_of_the_rest_spoils_no_part(bring):
    bring.target.parent.mkdir()
    bring.part.write_bytes(BODY[:300_000])
    _, go = bring(lambda to: reply(to, PAGE, Content_Type="text/html"))
    with pytest.raises(InputError, match="text/html"):
        go()
    assert not bring.part.exists()


@pytest.mark.parametrize(
    "send",
    [
        lambda to: reply(to, BODY, length=None),
        lambda to: reply(to, BODY, 206, Content_Range="nonsense"),
        lambda to: reply(to, BODY, 206),
        lambda to: reply(to, BODY, Content_Encoding="identity"),
    ],
)
def test_server__that_says_little_of_the_right_file_is_believed_by_its_checksum(bring, send):
    _, go = bring(send)
    assert go().read_bytes() == BODY


def test_server__that_resumes_elsewhere_is_found_out(bring):
    bring.target.parent.mkdir()
    bring.part.write_bytes(BODY[:300_000])
    total = f"bytes 100-{SIZE - 1}/{SIZE}"
    _, go = bring(lambda to: reply(to, BODY[100:] + b"x" * 100, 206, Content_Range=total))
    with pytest.raises(RagcoreError, match=r"sha256|ended early"):
        go()
    assert not bring.target.exists()


def test_server__that_ends_early_without_saying_a_length_is_resumed(bring):
    def send(to):
        begin = int((to.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        part = BODY[begin : begin + 400_000]
        if not begin:
            return reply(to, part, length=None)
        return reply(to, part, 206, None, Content_Range=f"bytes {begin}-{SIZE - 1}/{SIZE}")

    server, go = bring(send)
    assert go().read_bytes() == BODY
    assert server.asked == [None, "bytes=400000-", "bytes=800000-"]


def test_server__that_redirects_is_followed_and_one_in_a_circle_is_left(bring):
    def send(to):
        if to.path.endswith("/there"):
            return reply(to, BODY)
        return reply(to, b"", 302, Location="/there")

    _, go = bring(send)
    assert go().read_bytes() == BODY
    bring.target.unlink()
    _, go = bring(lambda to: reply(to, b"", 302, Location="/corpus.tgz"))
    with pytest.raises(RagcoreError, match="0 of 1,024,000 bytes have come"):
        go()


def test_server__that_redirects_to_a_file_of_this_machine_is_not_followed(bring):
    _, go = bring(lambda to: reply(to, b"", 302, Location="file:///etc/hostname"))
    with pytest.raises(RagcoreError, match="0 of 1,024,000 bytes have come"):
        go()


def test_folder__that_cannot_be_written_to_is_named(bring, monkeypatch):
    _, go = bring(lambda to: reply(to, BODY))
    bring.target.parent.mkdir()
    bring.part.with_name(f".{bring.part.name}.lock").mkdir()
    with pytest.raises(InputError, match="expected a folder to write to"):
        go()


def test_download__that_is_interrupted_keeps_its_part_and_frees_its_lock(bring):
    begun, free = threading.Event(), threading.Event()

    def send(to):
        if to.headers.get("Range"):
            begin = int(to.headers["Range"].removeprefix("bytes=").rstrip("-"))
            total = f"bytes {begin}-{SIZE - 1}/{SIZE}"
            return reply(to, BODY[begin:], 206, Content_Range=total)
        reply(to, BODY[:600_000], length=SIZE)
        to.wfile.flush()
        begun.set()
        return free.wait(60)

    server, go = bring(send)
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragcore.catalogue.download import download\n"
        "download(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))\n"
    )
    words = [server.url, str(bring.target), SHA, str(SIZE)]
    other = subprocess.Popen(
        [sys.executable, "-c", code, *words], env=environment(), stderr=subprocess.DEVNULL
    )
    try:
        assert begun.wait(60)
        while not bring.part.exists() or bring.part.stat().st_size < 500_000:
            assert other.poll() is None
        with pytest.raises(RagcoreError, match="by another process"):
            go()
        os.kill(other.pid, signal.SIGINT)
        assert other.wait(60) != 0
    finally:
        free.set()
        other.kill()
        other.wait()
    assert not bring.target.exists()
    assert go().read_bytes() == BODY
    assert server.asked[-1] is not None
    assert sorted(p.name for p in bring.target.parent.iterdir()) == ["corpus.tgz"]
