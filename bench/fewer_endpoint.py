"""Attacks per minute on an endpoint that answers in 200 ms, one text a request, 8 requests at a time.

    python bench/fewer_endpoint.py --victim mr.skops --surrogate surrogate.json [--rows 60]

The endpoint waits; the machine has little to do. The similarity constraint asks the static encoder, so that
the constraints take no time beside the endpoint. The surrogate was fitted before, on as many answers as its
file says; `with the fit` counts them as shared by 500 rows. Adds to `bench/fewer.json`.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import environment as env
from fewer import FITTED_FOR, OUT, figures
from protocol import one_thread

one_thread()

from unfooled.core.session import Life  # noqa: E402
from unfooled.runs.attack import Observer  # noqa: E402

SECONDS = 0.2
TOGETHER = 8


def serve(victim: Any) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(SECONDS)
            answer = json.dumps({"probabilities": victim.predict(asked["texts"]).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *about: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Clock(Observer):
    """Starts when the attack does: loading, and the look at the victim before it, are the same for both."""

    began = 0.0

    def working(self, life: Callable[[], Life]) -> None:
        self.began = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--victim", required=True)
    parser.add_argument("--surrogate", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=60)
    args = parser.parse_args()
    import unfooled
    from unfooled.core.recipe import load_recipe, with_everywhere
    from unfooled.victims.loading import load_victim

    local = load_victim(f"sklearn:{args.victim}")
    server = serve(local)
    address = f"http://127.0.0.1:{server.server_port}/predict"
    recipe = with_everywhere(load_recipe("textfooler@textattack"), "encoder", "potion")
    asked = json.loads(args.surrogate.read_text(encoding="utf-8"))["facts"]["queries"]
    told: dict[str, Any] = {"rows": args.rows, "fitting": asked}
    for way, more in (("plain", {}), ("surrogate", {"surrogate": str(args.surrogate)})):
        options = {"batch_size": 1, "concurrency": TOGETHER}
        endpoint = load_victim(address, labels=list(local.labels), **options)
        clock = Clock()
        run = unfooled.attack(
            endpoint, env.HOME / "mr.jsonl", recipe, limit=args.rows, observer=clock, **more
        )
        seconds = time.perf_counter() - clock.began
        found = figures(list(run.results()))
        told[way] = found | {"seconds": round(seconds, 1), "per_minute": round(60 * found["n"] / seconds, 1)}
        print(way, told[way], flush=True)
    share = asked / FITTED_FOR * told["surrogate"]["n"] * SECONDS / TOGETHER
    told["ratio"] = round(told["surrogate"]["per_minute"] / told["plain"]["per_minute"], 2)
    told["ratio_with_fit"] = round(told["plain"]["seconds"] / (told["surrogate"]["seconds"] + share), 2)
    found = json.loads(OUT.read_text(encoding="utf-8"))
    OUT.write_text(json.dumps(found | {"endpoint": told}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print({"ratio": told["ratio"], "with the fit": told["ratio_with_fit"]})


if __name__ == "__main__":
    main()
