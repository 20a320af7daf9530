"""The pages of a study: sign in, read, judge one item at a time, go back, finish."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unfooled.errors import RunFileError
from unfooled.extras import libraries_of
from unfooled.people.study.content import Fields
from unfooled.people.study.file import StudyFile
from unfooled.people.study.protocols import NEITHER, Question
from unfooled.people.web.guard import App, client_of
from unfooled.people.web.replies import form, go, json_reply, message, not_found, page, refused, static
from unfooled.people.web.slowing import SlowDown

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

WRONG_CODE_SECONDS = 0.3  # a wrong code is answered late, so that guessing is slow as well as hopeless
TITLES = {"text": ("",), "pair": ("Text A", "Text B"), "beside": ("First version", "Second version")}


def study_app(study: StudyFile) -> App:
    with libraries_of("web", "starlette", needed_for="the page of a study"):
        from starlette.applications import Starlette
        from starlette.routing import Route

    pages = _StudyPages(study)
    app = Starlette(
        routes=[
            Route("/", pages.home, methods=["GET"]),
            Route("/sign-in", pages.sign_in, methods=["POST"]),
            Route("/sign-out", pages.sign_out, methods=["POST"]),
            Route("/begin", pages.begin, methods=["GET", "POST"]),
            Route("/items/{place:int}", pages.item, methods=["GET", "POST"]),
            Route("/done", pages.done, methods=["GET"]),
            Route("/static/{name}", static, methods=["GET"]),
        ],
        exception_handlers={404: not_found, 405: not_found},
    )
    app.router.redirect_slashes = False  # it would send browsers to whatever host they named
    return app


class _StudyPages:
    """Endpoints. What touches the file runs in a thread: a slow disk must not stop other annotators."""

    def __init__(self, study: StudyFile) -> None:
        self.study = study
        self.name = hashlib.sha256(b"name:" + study.secret).hexdigest()[:10]
        self.cookie = f"unfooled_study_{self.name}"
        self.slow = SlowDown()

    # -- pages -------------------------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        annotator = self._who(request)
        if annotator is None:
            return page("signin.html", title=self.study.protocol.title, problem="")
        return go(await self._next(annotator))

    async def sign_in(self, request: Request) -> Response:
        given = (await form(request)).get("code", "")
        client = client_of(request.scope)
        if wait := await self.slow.turn(client):
            problem = f"Too many wrong codes came from here. Please try again in {wait} seconds."
            response = page("signin.html", 429, title=self.study.protocol.title, problem=problem)
            response.headers["retry-after"] = str(wait)
            return response
        annotator = self.study.annotator(given)
        self.slow.tell(client, right=annotator is not None)
        if annotator is None:
            await asyncio.sleep(WRONG_CODE_SECONDS)
            problem = "This code is not known. Please check it, or ask whoever sent it."
            return page("signin.html", 403, title=self.study.protocol.title, problem=problem)
        response = go(await self._next(annotator))
        response.set_cookie(
            self.cookie, self.study.codes[annotator], max_age=60 * 86400, httponly=True, samesite="lax"
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        annotator = self._who(request)
        if annotator is not None and not self._genuine(annotator, await form(request)):
            return refused()
        response = go("/")
        response.delete_cookie(self.cookie, httponly=True, samesite="lax")
        return response

    async def begin(self, request: Request) -> Response:
        annotator = self._who(request)
        if annotator is None:
            return go("/")
        if request.method == "POST":
            if not self._genuine(annotator, await form(request)):
                return refused()
            await asyncio.to_thread(self.study.begin, annotator)
            return go(await self._next(annotator))
        return page(
            "begin.html",
            protocol=self.study.protocol,
            primer=self.study.primer,
            progress=await asyncio.to_thread(self.study.progress, annotator),
            labels=self.study.labels,
            proof=self._proof(annotator),
        )

    async def item(self, request: Request) -> Response:
        annotator, number = self._who(request), request.path_params["place"]
        wants_json = "application/json" in request.headers.get("accept", "")
        if annotator is None:
            return json_reply({"problem": "please sign in"}, 401) if wants_json else go("/")
        if not 1 <= number <= len(self.study.orders[annotator]):
            return message(404, "There is no such item.")
        if request.method == "GET":
            return await self._show(annotator, number - 1)
        given = await form(request)
        if not self._genuine(annotator, given):
            return refused()
        try:
            values = {name[2:]: int(value) for name, value in given.items() if name.startswith("q.")}
            await asyncio.to_thread(self.study.save, annotator, number - 1, values)
        except ValueError:
            return message(400, "This is not an answer to what was asked.")
        except RunFileError as error:
            # Never say "saved" when it was not; the page keeps the answer and tries again.
            return message(503, f"The answer could not be saved: {error.cause}.")
        if wants_json:
            progress = await asyncio.to_thread(self.study.progress, annotator)
            return json_reply({"saved": sorted(values), "done": progress.done, "total": progress.total})
        answered = await asyncio.to_thread(self.study.answers_to, annotator, number - 1)
        if len(answered) < len(self._questions(annotator, number - 1)):
            return await self._show(annotator, number - 1, "Please answer every question.")
        return go(self._after(annotator, number))

    async def done(self, request: Request) -> Response:
        annotator = self._who(request)
        if annotator is None:
            return go("/")
        progress = await asyncio.to_thread(self.study.progress, annotator)
        return page("done.html", progress=progress, proof=self._proof(annotator))

    # -- parts -------------------------------------------------------------------------------------

    async def _show(self, annotator: int, at: int, problem: str = "") -> Response:
        study = self.study
        place = study.orders[annotator][at]
        item = study.items[place.item]
        given = await asyncio.to_thread(study.answers_to, annotator, at)
        progress = await asyncio.to_thread(study.progress, annotator)
        titles = TITLES[item.view]
        numbers = [1, 0] if place.flipped else list(range(len(item.texts)))
        texts = [(titles[i], item.texts[n]) for i, n in enumerate(numbers)]
        return page(
            "item.html",
            number=at + 1,
            total=progress.total,
            finished=progress.done,
            view=item.view,
            texts=[(title, _single(fields)) for title, fields in texts],
            questions=[
                _asked(question, study.labels, numbers, given.get(question.id))
                for question in self._questions(annotator, at)
            ],
            after=self._after(annotator, at + 1),
            before=f"/items/{at}" if at else "/begin",
            proof=self._proof(annotator),
            kept=f"unfooled:{self.name}:{annotator}",
            problem=problem,
        )

    def _questions(self, annotator: int, at: int) -> tuple[Question, ...]:
        item = self.study.items[self.study.orders[annotator][at].item]
        return self.study.protocol.part(item.view).questions

    def _after(self, annotator: int, number: int) -> str:
        return f"/items/{number + 1}" if number < len(self.study.orders[annotator]) else "/done"

    async def _next(self, annotator: int) -> str:
        """Where an annotator goes on: what comes first, then the first open item, then the end."""
        if not await asyncio.to_thread(self.study.begun, annotator):
            return "/begin"
        progress = await asyncio.to_thread(self.study.progress, annotator)
        return "/done" if progress.open is None else f"/items/{progress.open + 1}"

    def _who(self, request: Request) -> int | None:
        code = request.cookies.get(self.cookie, "")
        return self.study.annotator(code) if code else None

    def _proof(self, annotator: int) -> str:
        """Forms carry it; only a page served to this annotator knows it."""
        message = f"form:{self.study.codes[annotator]}".encode()
        return hmac.new(self.study.secret, message, hashlib.sha256).hexdigest()

    def _genuine(self, annotator: int, given: Mapping[str, str]) -> bool:
        return hmac.compare_digest(given.get("proof", "").encode(), self._proof(annotator).encode())


def _asked(
    question: Question, labels: tuple[str, ...], numbers: list[int], given: int | None
) -> dict[str, Any]:
    """A question with its options in the order of the screen; the first nine have a key."""
    if question.kind == "label":
        options = list(enumerate(labels))
    elif question.kind == "scale":
        options = [(value, str(value)) for value in question.values(0)]
    else:
        options = [(numbers[0], "Text A"), (numbers[1], "Text B"), (NEITHER, "No difference")]
    return {
        "id": question.id,
        "kind": question.kind,
        "text": question.text,
        "low": question.low,
        "high": question.high,
        "options": [
            {"value": value, "name": name, "key": key if key < 10 else "", "chosen": value == given}
            for key, (value, name) in enumerate(options, 1)
        ],
    }


def _single(fields: Fields) -> list[tuple[str, str]]:
    """A text of one field needs no name for it."""
    return [("", fields[0][1])] if len(fields) == 1 else list(fields)
