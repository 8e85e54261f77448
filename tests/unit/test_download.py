"""Downloads from a server of this machine: resumed, verified, whole or not there."""

from __future__ import annotations

import hashlib

import pytest

from ragcore.catalogue.download import download
from ragcore.errors import InputError, RagcoreError
from served import Server

BODY = bytes(range(256)) * 4_000
SIZE = len(BODY)
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def server():
    made = Server(BODY)
    yield made
    made.stop()


@pytest.fixture
def bring(server, tmp_path):
    target = tmp_path / "data" / "corpus.tgz"
    waits = []

    def call(sha=SHA, size=SIZE, **more):
        return download(server.url, target, sha, size, wait=waits.append, **more)

    call.target, call.part, call.waits = target, target.with_name("corpus.tgz.part"), waits
    return call


def test_download__brings_the_file_and_says_how_far_it_is(server, bring):
    steps = []
    assert bring(progress=lambda *step: steps.append(step)).read_bytes() == BODY
    assert steps[0] == ("corpus.tgz", 0, len(BODY))
    assert steps[-1] == ("corpus.tgz", len(BODY), len(BODY))
    assert sorted(p.name for p in bring.target.parent.iterdir()) == ["corpus.tgz"]


def test_download__of_what_is_there_asks_nobody(server, bring):
    bring()
    bring()
    assert server.asked == [None]


def test_download__goes_on_where_a_killed_one_stopped(server, bring):
    bring.target.parent.mkdir()
    bring.part.write_bytes(BODY[:300_000])
    assert bring().read_bytes() == BODY
    assert server.asked == ["bytes=300000-"]


def test_download__goes_on_when_the_line_breaks(server, bring):
    server.cut = [100_000, 200_000]
    assert bring().read_bytes() == BODY
    assert server.asked == [None, "bytes=100000-", "bytes=300000-"]
    assert not bring.waits


def test_download__starts_anew_where_the_server_does_not_resume(server, bring):
    bring.target.parent.mkdir()
    bring.part.write_bytes(BODY[:300_000])
    server.ranges = False
    assert bring().read_bytes() == BODY


def test_download__of_another_file_is_refused_and_leaves_nothing(server, bring):
    server.body = BODY[::-1]
    with pytest.raises(InputError, match="the source has changed"):
        bring()
    assert not bring.target.exists()
    assert not bring.part.exists()


def test_download__of_a_longer_file_is_refused(server, bring):
    server.body = BODY + b"more"
    with pytest.raises(InputError, match="1,024,004 bytes"):
        bring()


def test_download__a_part_that_is_none_of_the_file_is_found_out_by_its_checksum(server, bring):
    bring.target.parent.mkdir()
    bring.part.write_bytes(b"x" * 300_000)
    with pytest.raises(InputError, match="sha256"):
        bring()
    assert bring().read_bytes() == BODY


def test_download__gives_up_and_keeps_what_came(server, bring):
    server.cut = [500_000, 0, 0, 0, 0]
    with pytest.raises(RagcoreError, match=r"500,000 of 1,024,000 bytes have come"):
        bring()
    assert bring.part.stat().st_size == 500_000
    assert bring().read_bytes() == BODY


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (403, 1), (503, 4), (429, 4)])
def test_download__a_refusal_is_said_and_a_busy_server_is_asked_again(server, bring, status, tries):
    server.status = status
    with pytest.raises(RagcoreError, match=f"HTTP {status}"):
        bring()
    assert len(server.asked) == tries
    assert len(bring.waits) == tries - 1


def test_download__from_nowhere_is_an_error(tmp_path):
    with pytest.raises(RagcoreError, match="0 of 3 bytes"):
        download("http://127.0.0.1:9/none", tmp_path / "f", SHA, 3, wait=lambda _: None)


def test_download__two_at_a_time_do_not_mix(server, bring):
    fcntl = pytest.importorskip("fcntl")
    bring.target.parent.mkdir()
    with bring.part.with_name(f".{bring.part.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RagcoreError, match="by another process"):
            bring()
    assert bring().read_bytes() == BODY
