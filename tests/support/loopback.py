"""An HTTP server on loopback, in a thread, whose answers a test decides."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer:
    """Begins to listen when it is made; what `answer` gives is sent, and None hangs up without a word."""

    drip = 0.0  # seconds between the bytes of a body

    def __init__(self, path: str) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                answer = outer.answer(self.path, json.loads(content), dict(self.headers))
                if answer is None:
                    self.close_connection = True
                    return
                status, data, headers = answer
                try:
                    self.send_response(status)
                    for key, value in {**headers, "content-length": str(len(data))}.items():
                        self.send_header(key, value)
                    self.end_headers()
                    for byte in data if outer.drip else ():
                        self.wfile.write(bytes([byte]))
                        time.sleep(outer.drip)
                    self.wfile.write(b"" if outer.drip else data)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client did not wait

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}{path}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(
        self, path: str, document: Any, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]] | None:
        raise NotImplementedError

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()
