"""A server of files on this machine: what it sends, how it misbehaves, what it was asked."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """What it sends, how it misbehaves, and what it was asked."""

    def __init__(self, body: bytes):
        self.body, self.ranges, self.cut, self.status, self.asked = body, True, [], 200, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/corpus.tgz"

    def answer(self, to):
        said = to.headers.get("Range")
        self.asked.append(said)
        if self.status != 200:
            to.send_error(self.status)
            return
        begin = int(said.removeprefix("bytes=").rstrip("-")) if said and self.ranges else 0
        if begin > len(self.body):
            to.send_error(416)
            return
        part = self.body[begin:]
        to.send_response(206 if said and self.ranges else 200)
        if said and self.ranges:
            to.send_header("Content-Range", f"bytes {begin}-{len(self.body) - 1}/{len(self.body)}")
        to.send_header("Content-Length", str(len(part)))
        to.end_headers()
        to.wfile.write(part[: self.cut.pop(0)] if self.cut else part)
        to.close_connection = True

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
