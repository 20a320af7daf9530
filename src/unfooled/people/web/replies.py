"""What both applications answer with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from unfooled.people.web.templates import render, static_file

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def form(request: Request) -> dict[str, str]:
    """The fields of a posted form; one that cannot be read has none."""
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        return {}


def page(name: str, status: int = 200, **values: Any) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(render(name, **values), status)


def message(status: int, text: str) -> Response:
    return page("message.html", status, text=text)


def refused() -> Response:
    return message(403, "This request did not come from the page, so it was refused.")


def json_reply(value: Any, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(value, status)


def go(path: str) -> Response:
    from starlette.responses import RedirectResponse

    return RedirectResponse(path, status_code=303)


async def static(request: Request) -> Response:
    from starlette.responses import Response

    try:
        kind, content = static_file(request.path_params["name"])
    except KeyError:
        return message(404, "There is no such file.")
    return Response(content, media_type=kind, headers={"cache-control": "max-age=31536000, immutable"})


async def not_found(_request: Request, _error: Exception) -> Response:
    return message(404, "There is no such page.")
