"""The playground: type a text, choose an attack, watch it being broken."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from unfooled.core.recipe import Recipe, all_recipes
from unfooled.core.result import Example
from unfooled.core.session import require_resources
from unfooled.core.victim import Victim
from unfooled.errors import UserError
from unfooled.extras import libraries_of
from unfooled.people.web.attack_service import MOST_WORDS, AttackRequest, AttackService
from unfooled.people.web.guard import App, Receive, Scope, Send
from unfooled.people.web.repeating import ModelArguments, repeat_command
from unfooled.people.web.replies import form, json_reply, message, not_found, page, static
from unfooled.people.web.visits import Visits
from unfooled.text import Text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_FOUND = 40  # texts of the data set listed at once
MOST_CHARACTERS = 20_000
MOST_BUDGET = 100_000
MOST_DIGITS = 12  # of any number that a visitor sends
SAMPLE = "a charming , funny and moving film with a superb cast and a clever story ."


@dataclass(frozen=True)
class Playground:
    """What the page is about. `fields` are the names of the texts that a visitor types."""

    victims: tuple[Victim, ...]
    models: tuple[ModelArguments, ...]
    names: tuple[str, ...]
    fields: tuple[str, ...] = ("text",)
    edit: str = "text"
    examples: tuple[Example, ...] = ()
    data: str = ""
    attack: str = "textfooler"
    sample: str = field(default=SAMPLE)


class PlaygroundApp:
    """The application; `close` ends what is under way."""

    def __init__(self, shown: Playground) -> None:
        with libraries_of("web", "starlette", needed_for="the playground"):
            from starlette.applications import Starlette
            from starlette.routing import Route

        self._service = AttackService(shown.victims)
        self._visits = Visits(self._service)
        pages = _PlaygroundPages(shown, self._visits)
        app = Starlette(
            routes=[
                Route("/", pages.home, methods=["GET"]),
                Route("/texts", pages.texts, methods=["GET"]),
                Route("/attacks", pages.begin, methods=["POST"]),
                Route("/attacks/{visit}/events", pages.events, methods=["GET"]),
                Route("/attacks/{visit}/cancel", pages.cancel, methods=["POST"]),
                Route("/static/{name}", static, methods=["GET"]),
            ],
            exception_handlers={404: not_found, 405: not_found},
        )
        app.router.redirect_slashes = False  # it would send browsers to whatever host they named
        self._app: App = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def close(self) -> None:
        self._visits.close()
        self._service.close()


@dataclass(frozen=True)
class AttackChoice:
    """An attack in the list; `missing` says why it cannot be chosen."""

    name: str
    summary: str
    missing: str = ""


def choices(victims: Sequence[Victim]) -> list[AttackChoice]:
    """Every attack, those that fit all the victims and have their resources first."""
    found = [
        AttackChoice(recipe.full_name, recipe.summary, _missing(recipe, victims)) for recipe in all_recipes()
    ]
    return sorted(found, key=lambda choice: bool(choice.missing))


def _missing(recipe: Recipe, victims: Sequence[Victim]) -> str:
    for victim in victims:
        lacking = [need for need in recipe.requires() if need not in victim.capabilities]
        if lacking:
            return f"{victim.name} gives no {' and '.join(lacking)}"
    try:
        require_resources(recipe)
    except UserError as error:
        return error.cause
    return ""


class _PlaygroundPages:
    def __init__(self, shown: Playground, visits: Visits) -> None:
        self.shown = shown
        self.labels = shown.victims[0].labels
        self.visits = visits
        self.proof = secrets.token_urlsafe(24)
        self.choices = choices(shown.victims)
        self.lower = [
            " ".join(content for _, content in example.content).lower() for example in shown.examples
        ]

    async def home(self, _request: Request) -> Response:
        shown = self.shown
        first = shown.examples[0] if shown.examples else None
        content = (
            dict(first.content) if first else dict.fromkeys(shown.fields, "") | {shown.edit: shown.sample}
        )
        chosen = [choice.name for choice in self.choices if not choice.missing]
        wanted = [name for name in chosen if shown.attack in (name, name.partition("@")[0])]
        return page(
            "playground.html",
            names=shown.names,
            labels=self.labels,
            content=content,
            edit=shown.edit,
            label=self.labels[first.label] if first else "",
            data=shown.data,
            choices=self.choices,
            chosen=(wanted or chosen or [""])[0],
            proof=self.proof,
            most=MOST_CHARACTERS,
        )

    async def texts(self, request: Request) -> Response:
        """Texts of the data set that hold the words asked for."""
        words = request.query_params.get("find", "")[:200].lower().split()
        hits = [i for i, text in enumerate(self.lower) if all(word in text for word in words)]
        found = [self.shown.examples[i] for i in hits[:MOST_FOUND]]
        return json_reply(
            {
                "found": len(hits),
                "texts": [
                    {"content": dict(text.content), "label": self.labels[text.label]} for text in found
                ],
            }
        )

    async def begin(self, request: Request) -> Response:
        given = await form(request)
        if not self._genuine(given):
            return json_reply({"cause": "This page is older than the server.", "remedy": "Reload it."}, 403)
        try:
            wanted = self._attack_request(given)
            visit = await self.visits.begin(wanted, partial(self._command, wanted))
        except UserError as error:
            return json_reply({"cause": error.cause, "remedy": error.remedy}, 400)
        return json_reply({"id": visit.id})

    async def events(self, request: Request) -> Response:
        from starlette.responses import StreamingResponse

        visit = self.visits.get(request.path_params["visit"])
        if visit is None:
            return message(404, "There is no such attack.")
        last = request.headers.get("last-event-id", "")
        after = int(last) + 1 if last.isdecimal() and len(last) <= MOST_DIGITS else 0
        return StreamingResponse(
            visit.listen(after), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )

    async def cancel(self, request: Request) -> Response:
        given = await form(request)
        visit = self.visits.get(request.path_params["visit"])
        if visit is None or not self._genuine(given):
            return json_reply({"cause": "There is no such attack."}, 404)
        visit.cancel()
        return json_reply({"cancelled": True})

    def _attack_request(self, given: Mapping[str, str]) -> AttackRequest:
        content = {name: given.get(f"field.{name}", "").replace("\r\n", "\n") for name in self.shown.fields}
        if not all(text.strip() for text in content.values()):
            raise UserError("There is no text yet.", "Type one, or pick one.")
        if sum(map(len, content.values())) > MOST_CHARACTERS:
            raise UserError("This text is too long.", f"{MOST_CHARACTERS:,} characters are allowed.")
        text = Text(content, edit=self.shown.edit)
        if len(text.words) > MOST_WORDS:
            raise UserError(f"This text has {len(text.words):,} words.", f"{MOST_WORDS:,} are allowed.")
        name = given.get("attack", "")
        if name not in {choice.name for choice in self.choices}:
            raise UserError("There is no such attack.", "Choose one of the list.")
        label = given.get("label", "")
        if label and label not in self.labels:
            raise UserError("There is no such class.", "Choose one of the list.")
        return AttackRequest(
            text=text,
            attack=name,
            label=self.labels.index(label) if label else None,
            budget=_number(given.get("budget", ""), "The budget", 1, MOST_BUDGET),
            seed=_number(given.get("seed", ""), "The seed", 0, 2**31) or 0,
        )

    def _command(self, wanted: AttackRequest, model: int, label: int) -> str:
        return repeat_command(
            self.shown.models[model],
            dict(wanted.text.fields),
            self.shown.edit,
            self.labels[label],
            wanted.attack,
            seed=wanted.seed,
            budget=wanted.budget,
        )

    def _genuine(self, given: Mapping[str, str]) -> bool:
        return hmac.compare_digest(given.get("proof", "").encode(), self.proof.encode())


def _number(given: str, what: str, least: int, most: int) -> int | None:
    if not given.strip():
        return None
    digits = given.strip()
    if not digits.isdecimal() or len(digits) > MOST_DIGITS or not least <= int(digits) <= most:
        raise UserError(f"{what} is not a number from {least} to {most:,}.", "Leave it empty for none.")
    return int(digits)
