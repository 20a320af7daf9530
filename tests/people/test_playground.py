"""The playground: the same results as the command line, live events, cancel, two tabs, a real browser."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest

from browser import CONTRAST, PATIENCE, open_browser, watched_page
from reviews import sentences
from study_runs import HOSTILE
from toys import Answering, encoder, linear, neighbours, tags
from unfooled.attacks.parts.goals import Untargeted
from unfooled.core.attempt import attempt
from unfooled.core.engine import Engine
from unfooled.core.program import Program, ask
from unfooled.core.recipe import load_recipe
from unfooled.core.session import Session, Settings
from unfooled.core.victim import Probabilities, TextValue
from unfooled.data.dataset import Dataset
from unfooled.errors import UserError, VictimError
from unfooled.people.web.attack_service import AttackRequest, AttackService
from unfooled.people.web.events import AttackEvents, WatchedSearch
from unfooled.people.web.playground_app import Playground, PlaygroundApp
from unfooled.people.web.repeating import ModelArguments, repeat_command
from unfooled.people.web.serving import checked_token
from unfooled.text import Text
from unfooled.victims.fake import FakeVictim
from waiting import eventually
from web_server import request as http
from web_server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = "a charming , funny and moving film with a superb cast and a clever story ."


class SlowVictim(FakeVictim):
    """One text at a time, each as slow as a large model; counts what it was asked."""

    name = "slow"
    batch_size = 2

    def __init__(self, seconds: float = 0.02) -> None:
        super().__init__()
        self.seconds = seconds
        self.asked: list[TextValue] = []
        self.batches: list[int] = []

    def predict(self, texts: Any, /) -> Probabilities:
        time.sleep(self.seconds)
        self.asked += texts
        self.batches.append(len(texts))
        return super().predict(texts)


class Stubborn(FakeVictim):
    """Looks hardened: never decides for anything but what it is born with."""

    name = "stubborn"

    def predict(self, texts: Any, /) -> Probabilities:
        return np.tile([0.1, 0.9], (len(texts), 1))


class Collected:
    """Events of one attack, and a flag for its end."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.over = threading.Event()

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event["kind"] in ("done", "failed"):
            self.over.set()

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def end(self) -> dict[str, Any]:
        assert self.over.wait(30), self.kinds()
        return self.events[-1]


@pytest.fixture
def service() -> Iterator[Callable[..., AttackService]]:
    opened: list[AttackService] = []

    def make(*victims: Any) -> AttackService:
        opened.append(AttackService(victims))
        return opened[-1]

    yield make
    for service in opened:
        service.close()


def attack_request(text: str = TEXT, attack: str = "deepwordbug", **given: Any) -> AttackRequest:
    return AttackRequest(text=Text(text), attack=attack, **given)


def alone(text: str, attack: str = "deepwordbug", seed: int = 0) -> Any:
    data = Dataset.from_pairs([(text, "positive")], labels=("negative", "positive"))
    (result,) = Session(FakeVictim(), load_recipe(attack), Settings(seed=seed)).attack(data)
    return result


# -- the engine ------------------------------------------------------------------------------------


def test_an_attack_tells_what_it_does_and_ends_as_everywhere(service: Callable[..., AttackService]) -> None:
    told = Collected()
    service(FakeVictim()).begin(attack_request(), 0, told)
    end, result = told.end(), alone(TEXT)
    assert end["outcome"] == result.outcome == "success"
    assert end["queries"] == result.queries
    assert "".join(text for kind, text in end["pieces"] if kind != "gone") == result.perturbed
    assert told.kinds()[0] == "start"
    start = told.events[0]
    assert "".join(gap + word for gap, word in zip(start["gaps"], [*start["words"], ""], strict=True)) == TEXT
    worth = next(event["worth"] for event in told.events if event["kind"] == "importance")
    words = told.events[0]["words"]
    assert words[max(worth, key=lambda i: worth[i])] == "superb"  # the only strong word
    tries = [event for event in told.events if event["kind"] == "tries"]
    assert [event["tries"][0][-1] for event in tries] == [False] * (len(tries) - 1) + [True]
    json.dumps(told.events)


def test_accepted_edits_grow_one_by_one() -> None:
    """A greedy swap on a toy: every accepted edit is told before the next candidates are."""
    recipe = load_recipe("textfooler")
    told = Collected()
    events = AttackEvents(told)
    words = {"great": ("good", "fine"), "lovely": ("nice", "sweet"), "film": ("movie",)}
    weights = {"great": 0.3, "lovely": 0.2, "good": 0.15, "fine": 0.1, "nice": 0.1, "sweet": 0.05}
    oracles = {
        "neighbours": neighbours(words),
        "tag": tags(dict.fromkeys(weights, "ADJ")),
        "encode": encoder(),
        "victim": linear(weights, -0.2),
    }
    named = {name: next(v for k, v in oracles.items() if name.startswith(k)) for name in recipe.oracles()}
    program = attempt(
        Text("great lovely film"), 1, Untargeted(), WatchedSearch(recipe.search, events), key=0, seed=0
    )
    (finished,) = Engine[Any](named | {"victim": oracles["victim"]}).run([(0, program)])
    assert finished.value is not None
    assert finished.value.outcome == "success"
    assert [edit.after for edit in finished.value.edits] == ["fine", "sweet"]
    accepted = [event for event in told.events if event["kind"] == "accepted"]
    assert [[edit[2:] for edit in event["edits"]] for event in accepted] == [[["great", "fine"]]]
    assert accepted[0]["probs"] == [0.4, 0.6]


def test_tabs_share_batches_and_do_not_touch_each_other(service: Callable[..., AttackService]) -> None:
    victim = SlowVictim(0.0)
    victim.batch_size = 64
    shared = service(victim)
    texts = [text for text, label in sentences(40, seed=3) if label == "positive"][:12]
    told = [Collected() for _ in texts]
    for text, listener in zip(texts, told, strict=True):
        shared.begin(attack_request(text), 0, listener)
    for text, listener in zip(texts, told, strict=True):
        end, result = listener.end(), alone(text)
        assert (end["outcome"], end["queries"]) == (result.outcome, result.queries)
        assert "".join(piece for kind, piece in end["pieces"] if kind != "gone") == result.perturbed
    assert max(victim.batches) > 12  # questions of several tabs in one batch


def test_cancel_works_at_once_and_for_one_only(service: Callable[..., AttackService]) -> None:
    victim = SlowVictim(0.05)
    shared = service(victim)
    long = " ".join(f"{word}{i} great" for i, word in enumerate(["film"] * 60))
    stopped, other = Collected(), Collected()
    running = shared.begin(attack_request(long), 0, stopped)
    eventually(lambda: victim.asked)
    shared.begin(attack_request("a great film"), 0, other)
    shared.cancel(running)
    count = len(stopped.events)
    assert other.end()["outcome"] == "success"
    assert len(stopped.events) == count
    assert shared.busy == 0
    later = Collected()
    shared.begin(attack_request("a superb film"), 0, later)  # asked behind whatever was still open
    assert later.end()["outcome"] == "success"
    assert len(stopped.events) == count
    assert sum("film0" in text or "film1" in text for text in victim.asked) < 40  # the rest was never asked


def test_two_models_answer_for_themselves(service: Callable[..., AttackService]) -> None:
    shared = service(FakeVictim(), Stubborn())
    told = [Collected(), Collected()]
    for model, listener in enumerate(told):
        shared.begin(attack_request(), model, listener)
    assert [listener.end()["outcome"] for listener in told] == ["success", "failure"]


def test_a_failing_model_is_told_and_the_next_attack_runs(service: Callable[..., AttackService]) -> None:
    victim = FakeVictim(poison="choke")
    shared = service(victim)
    bad, good = Collected(), Collected()
    shared.begin(attack_request("choke on this great film"), 0, bad)
    assert bad.end()["kind"] == "failed"
    assert bad.end()["cause"].startswith("the model failed: ")
    assert "chokes" in bad.end()["cause"]
    shared.begin(attack_request(), 0, good)
    assert good.end()["outcome"] == "success"

    class Gone(FakeVictim):
        def predict(self, texts: Any, /) -> Probabilities:
            error = VictimError("the model is gone", "start it again")
            error.fatal = True  # type: ignore[attr-defined]
            raise error

    dead = service(Gone())
    for _ in range(2):  # the engine comes up again after it fell
        told = Collected()
        dead.begin(attack_request(), 0, told)
        assert told.end() == {"kind": "failed", "cause": "the model is gone", "remedy": "start it again"}


class Remote(FakeVictim):
    """A model across a network: several calls under way at once."""

    name = "remote"
    batch_size = 2
    concurrency = 3

    async def answer(self, items: Any, /) -> Probabilities:
        await asyncio.sleep(0.005)
        return self.predict(items)


def test_a_model_across_a_network(service: Callable[..., AttackService]) -> None:
    shared = service(Remote(), FakeVictim())
    told = [Collected() for _ in range(3)]
    for model, listener in zip((0, 1, 0), told, strict=True):
        running = shared.begin(attack_request(), model, listener)
    shared.cancel(running)
    result = alone(TEXT)
    for listener in told[:2]:
        assert (listener.end()["outcome"], listener.end()["queries"]) == (result.outcome, result.queries)
    again = Collected()
    shared.begin(attack_request("a great film"), 0, again)
    assert again.end()["outcome"] == "success"
    assert not told[2].over.is_set()  # nothing more was heard of what was cancelled before


def test_a_small_transformer_shows_what_it_attends_to(service: Callable[..., AttackService]) -> None:
    """Attacks that look inside: each model's oracles are its own, importance comes from them."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_models import tiny

    victims = [tiny("bert", seed=seed) for seed in (0, 1)]
    shared = service(*victims)
    text = "the film was very good and the plot is not bad"
    for attack in ("asmax-gr", "gs-gr"):
        told = [Collected(), Collected()]
        for model, listener in enumerate(told):
            shared.begin(attack_request(text, attack), model, listener)
        for victim, listener in zip(victims, told, strict=True):
            end = listener.end()
            label = victim.labels[int(victim.predict([text]).argmax())]
            data = Dataset.from_pairs([(text, label)], labels=victim.labels)
            (result,) = Session(victim, load_recipe(attack)).attack(data)
            assert (end["outcome"], end["queries"]) == (result.outcome, result.queries)
            assert "".join(piece for kind, piece in end["pieces"] if kind != "gone") == result.perturbed
            worth = next(event["worth"] for event in listener.events if event["kind"] == "importance")
            assert set(worth) == set(range(11))


def test_what_an_attack_needs_is_said_before_it_starts(service: Callable[..., AttackService]) -> None:
    with pytest.raises(UserError, match="gradients"):
        service(FakeVictim()).prepare("jsma", 0)
    with pytest.raises(UserError, match="no attack"):
        service(FakeVictim()).prepare("nonsense", 0)


def test_cancelled_programs_leave_the_engine_to_the_others() -> None:
    """Two programs share a question; one is cancelled while it is asked."""
    closed: list[str] = []

    def program(name: str, items: list[str]) -> Program[list[Any]]:
        try:
            return (yield from ask("victim", items))
        finally:
            closed.append(name)

    oracle = Answering(str.upper)
    oracle.batch_size = 1
    engine = Engine[Any]({"victim": oracle})

    def stop(item: Any) -> Any:
        if item == "a":
            assert engine.cancel("one")
            assert not engine.cancel("one")
        return str(item).upper()

    oracle.answer = stop
    jobs = [("one", program("one", ["a", "b", "shared"])), ("two", program("two", ["shared", "c"]))]
    finished = list(engine.run(jobs))
    assert [(program.key, program.value) for program in finished] == [("two", ["SHARED", "C"])]
    assert "b" not in oracle.asked
    assert sorted(closed) == ["one", "two"]
    assert engine.live == 0


# -- the page --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


def shown(*victims: Any, **given: Any) -> Playground:
    models = tuple(ModelArguments(victim.name) for victim in victims)
    options = {"attack": "deepwordbug", "names": tuple(victim.name for victim in victims)} | given
    return Playground(victims=victims, models=models, **options)


def opened(browser: Browser, url: str, **options: Any) -> tuple[Page, list[str]]:
    page, trouble = watched_page(browser, url, **options)
    page.wait_for_selector("body[data-ready]")
    return page, trouble


def ended(page: Page, state: str) -> None:
    page.wait_for_selector(f"body[data-state={state}]", timeout=PATIENCE)


def test_breaking_a_sentence_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    with serving(PlaygroundApp(shown(FakeVictim()))) as url:
        page, trouble = opened(browser, url)
        page.fill("textarea", TEXT)
        page.click("#attack-it")
        ended(page, "broken")
        result = alone(TEXT)
        assert "broken by" in page.inner_text(".verdict-chip")
        assert page.locator(".edits li").count() == len(result.edits)
        assert page.locator(".shown-text ins").all_inner_texts() == [edit.after for edit in result.edits]
        assert f"{result.queries} queries" in page.inner_text(".facts")
        assert f"{100 * result.perturbed_probs[0]:.1f} %" in page.inner_text(".bars")
        assert page.inner_text("#state") == "This text is broken."
        shading = page.eval_on_selector_all(".word", "e => e.map(x => x.style.getPropertyValue('--worth'))")
        assert max(float(shade) for shade in shading if shade) == 1
        assert trouble == []
        # The command that the page shows finds the same text again.
        page.click(".command summary")
        command = page.inner_text(".command pre")
        page.close()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "unfooled").write_text(f'#!/bin/sh\nexec {sys.executable} -m unfooled "$@"\n')
    (folder / "unfooled").chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=600
    )
    table = [sys.executable, "-m", "unfooled", "export", "runs/typed", "-o", "out.jsonl"]
    subprocess.run(table, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert result.perturbed in row.values()
    assert row["queries"] == result.queries


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser: Browser, scheme: Any) -> None:
    with serving(PlaygroundApp(shown(FakeVictim()))) as url:
        page, _ = opened(browser, url, color_scheme=scheme, reduced_motion="reduce")
        page.click("#attack-it")
        ended(page, "broken")
        page.eval_on_selector(
            ".word", "e => { e.className += ' strongest'; e.style.setProperty('--worth', '1'); }"
        )
        for selector in (
            ".word",
            ".strongest",
            "del",
            "ins",
            ".verdict-chip",
            ".bar-name",
            ".facts",
            "#state",
        ):
            assert page.evaluate(CONTRAST, selector) >= 4.5, selector
        page.close()


def test_cancel_and_two_tabs_in_the_browser(browser: Browser) -> None:
    victim = SlowVictim(0.03)
    with serving(PlaygroundApp(shown(victim))) as url:
        first, _ = opened(browser, url)
        second, _ = opened(browser, url)
        first.fill("textarea", " ".join(f"film{i} great" for i in range(80)))
        second.fill("textarea", "a great film")
        first.click("#attack-it")
        first.wait_for_selector("body[data-state=running]")
        eventually(lambda: victim.asked)
        second.keyboard.press("Control+Enter")
        first.keyboard.press("Escape")
        ended(first, "cancelled")
        assert first.is_disabled("#cancel")
        ended(second, "broken")
        # The first one is free again, and its old attack is not heard of any more.
        first.fill("textarea", "a superb film")
        first.click("#attack-it")
        ended(first, "broken")
        assert "superb" in first.inner_text(".shown-text del")
        # A tab that is closed gives up its attack.
        second.fill("textarea", " ".join(f"story{i} great" for i in range(200)))
        second.click("#attack-it")
        second.locator(".queries").first.wait_for()
        asked = len(victim.asked)
        eventually(lambda: len(victim.asked) > asked)
        second.close()
        # An attack that goes on has questions in every batch: soon another one runs without any of them.
        for number in range(50):
            before = sum("story" in str(text) for text in victim.asked)
            first.fill("textarea", f"a terrific film {number}")
            first.click("#attack-it")
            ended(first, "broken")  # a click says `running` before anything else
            if sum("story" in str(text) for text in victim.asked) == before:
                break
        assert before < 400  # it did not come to its end: each of its 400 words would have been asked about
        first.close()


def test_side_by_side_on_a_phone_with_texts_to_pick(browser: Browser) -> None:
    rows = [(text, "positive") for text in HOSTILE] + [("a great film", "positive")]
    data = Dataset.from_pairs(rows, labels=("negative", "positive"))
    page_of = shown(FakeVictim(), Stubborn(), examples=tuple(data), data="<b>rows</b>")
    with serving(PlaygroundApp(page_of)) as url:
        page, trouble = opened(browser, url, viewport={"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.click("#pick")
        page.locator("#found", has_text="7 texts found").wait_for()
        assert "<script>window.harmed=1</script>" in page.inner_text("#texts")
        page.fill("#find", "GREAT film")
        page.locator("#found", has_text="2 texts found").wait_for()
        page.keyboard.press("Enter")  # takes the first
        assert page.input_value("textarea") == HOSTILE[0]
        assert page.input_value("#label") == "positive"
        page.keyboard.press("Enter")  # the focus lies on Attack
        ended(page, "broken")
        assert page.locator(".verdict-chip.broken").count() == 1
        assert page.locator(".verdict-chip.held").count() == 1
        assert "fake: broken. stubborn: holds." in page.inner_text("#state")
        assert "<script>" in page.inner_text(".lane:first-child .shown-text")
        assert page.locator(".lane script, .lane img").count() == 0
        assert page.evaluate("window.harmed") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert trouble == []
        # Everything to fill in has a name.
        unnamed = "e => e.filter(x => !x.labels || !x.labels.length).length"
        assert page.eval_on_selector_all("textarea, select, input:not([type=hidden])", unnamed) == 0
        page.close()


def test_what_the_server_refuses(browser: Browser) -> None:
    with serving(PlaygroundApp(shown(FakeVictim()))) as url:
        page, _ = opened(browser, url)
        proof = page.input_value("input[name=proof]")
        page.fill("textarea", "   ")
        page.click("#attack-it")
        ended(page, "refused")
        assert "There is no text yet" in page.inner_text("#state")
        page.close()
        home = {"Origin": url}
        good = f"proof={proof}&attack=deepwordbug%40textattack&field.text=a+great+film"
        assert http(url, "POST", "/attacks", {"Origin": "http://evil.example"}, good)[0] == 403
        assert http(url, "POST", "/attacks", {}, good)[0] == 403
        assert http(url, "POST", "/attacks", home, good.replace(proof, "x"))[0] == 403
        for bad in (
            "attack=none",
            "budget=-1",
            "seed=x",
            "seed=²",
            "seed=" + "9" * 5000,
            "label=none",
            "field.text=" + "a+" * 11_000,
        ):
            status, text, _ = http(url, "POST", "/attacks", home, f"{good}&{quote(bad, safe='=+.')}")
            assert (status, bool(json.loads(text)["cause"])) == (400, True), bad
        status, text, _ = http(url, "POST", "/attacks", home, good)
        number = json.loads(text)["id"]
        assert len(number) >= 24
        assert http(url, "GET", "/attacks/other/events", {})[0] == 404
        status, text, headers = http(url, "GET", f"/attacks/{number}/events", {})
        assert headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {"model')]
        assert events[-1]["outcome"] == "success"
        # Somebody whose connection broke goes on behind the last event seen.
        _, text, _ = http(url, "GET", f"/attacks/{number}/events", {"Last-Event-ID": str(len(events) - 2)})
        assert text.count("id: ") == 1
        assert http(url, "GET", f"/attacks/{number}/events", {"Last-Event-ID": "9" * 5000})[0] == 200
        # Too long for the server even to read: still a plain word.
        page, _ = opened(browser, url)
        page.eval_on_selector("textarea", "(box) => { box.value = 'é'.repeat(60000); }")
        page.click("#attack-it")
        ended(page, "refused")
        assert page.inner_text("#state") == "This text is too long."
        page.close()


def test_pairs_have_two_texts(browser: Browser) -> None:
    two = shown(FakeVictim(), fields=("premise", "hypothesis"), edit="hypothesis")
    with serving(PlaygroundApp(two)) as url:
        page, _ = opened(browser, url)
        page.fill("textarea >> nth=0", "somebody saw it")
        page.fill("textarea >> nth=1", "it is a great film")
        page.click("#attack-it")
        ended(page, "broken")
        assert "premise: somebody saw it" in page.inner_text(".shown-text")
        assert "--edit hypothesis" in page.text_content(".command pre")  # type: ignore[operator]
        page.close()


# -- small things ----------------------------------------------------------------------------------


def test_hostile_texts_are_quoted_in_the_command(tmp_path: Path) -> None:
    for text in ['it\'s "great" $(touch harmed) `touch harmed`\n%s \\n', *HOSTILE]:
        command = repeat_command(
            ModelArguments("m odel", "a,b"), {"text": text}, "text", "it's", "textfooler", seed=3, budget=7
        )
        first, _, second = command.partition(" \\\n  && ")
        subprocess.run(["bash", "-c", first], cwd=tmp_path, check=True, timeout=600)
        assert json.loads((tmp_path / "typed.jsonl").read_text()) == {"text": text, "label": "it's"}
        assert second.startswith("unfooled attack --model 'm odel' --labels a,b --data typed.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["typed.jsonl"]


def test_the_network_must_be_asked_for() -> None:
    assert checked_token("127.0.0.1", allow_remote=False, token=None) == ""
    assert checked_token("::1", allow_remote=False, token=None) == ""
    with pytest.raises(UserError, match="other machines"):
        checked_token("0.0.0.0", allow_remote=False, token="new")
    with pytest.raises(UserError, match="needs a token"):
        checked_token("0.0.0.0", allow_remote=True, token=None)
    with pytest.raises(UserError, match="5 characters"):
        checked_token("0.0.0.0", allow_remote=True, token="short")
    made = {checked_token("192.168.0.7", allow_remote=True, token="new") for _ in range(3)}
    assert len(made) == 3
    assert min(map(len, made)) >= 24
