"""What a reader sees, measured: pictures by hand, and those of a real browser where there is one."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from unfooled.attacks.parts.disguise import DISGUISES
from unfooled.core.result import Result
from unfooled.errors import ResourceError
from unfooled.metrics.measures import parse_measure
from unfooled.metrics.text_measures.picture import difference
from unfooled.resources import pictures
from unfooled.resources.pictures import BROWSERS, Picture, open_pictures
from unfooled.text import Text

SENTENCES = (
    "It's a rollicking adventure for you and all your mateys, first-rate and run-of-the-mill at once.",
    "Office affairs: a fluffy, baffling flick that waffles efficiently.",
    "The 2nd half of AVATAR wavers; to ask more of Yvonne would be unfair (really)!",
    "A cockeyed shot all the way, told in a manner that no lines of this width can hold without a break.",
)


def white(height: int = 20, width: int = 30) -> Picture:
    return np.full((height, width), 255, dtype=np.uint8)


def test_pixels_are_counted_in_the_box_around_all_ink() -> None:
    before, after = white(), white()
    before[5:15, 5:25] = 0  # 10 x 20
    after[5:15, 5:25] = 0
    assert difference(before, after) == 0.0
    after[5:15, 15:25] = 255
    # Right half gone: black that has no black beside it any more (10 x 9), and white where all around was
    # black (8 x 9), of which one column is new.
    assert difference(before, after) == pytest.approx((10 * 9 + 8) / 200)
    assert difference(white(), white()) == 0.0


def test_a_shift_by_one_pixel_is_seen_by_nobody_and_one_by_three_is() -> None:
    before, near, far = white(), white(), white()
    before[5:15, 10] = near[5:15, 11] = far[5:15, 13] = 0
    assert difference(before, near) == 0.0
    assert difference(before, far) == pytest.approx(2 * 10 / (10 * 4))


def test_a_picture_that_grew_is_compared_with_white() -> None:
    before, after = white(10), white(30)
    before[2:4, 2:12] = after[2:4, 2:12] = after[20:22, 2:12] = 0
    assert difference(before, after) == pytest.approx(20 / (20 * 10))


def test_without_a_browser_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ResourceError, match="install Chromium"):
        open_pictures()
    with pytest.raises(ResourceError, match="no name of a font"):
        open_pictures("a;b{}")


@pytest.fixture(scope="module")
def draw() -> pictures.BrowserPictures:
    if not any(map(shutil.which, BROWSERS)):
        pytest.skip("no Chromium is installed")
    return open_pictures()


def disguised(sentence: str, kind: str) -> str:
    text = Text(sentence)
    for place, word in enumerate(text.words):
        text = text.replace(place, DISGUISES[kind](word))
    return text.string


# What the page of attacks says of each: nothing to be seen, or next to nothing.
CLAIMED = {"word-joiner": 0.0, "zero-width-joiner": 0.0, "no-break-space": 0.0, "backwards": 0.01}
SEEN = ("full-width", "leet", "spaced", "stroke", "tags")


def test_what_claims_to_be_invisible_is(draw: pictures.BrowserPictures) -> None:
    kinds = [*CLAIMED, *SEEN]
    texts = [disguised(sentence, kind) for kind in kinds for sentence in SENTENCES]
    drawn = draw([*SENTENCES, *texts])
    assert len(drawn) == len(SENTENCES) + len(texts)
    for number, kind in enumerate(kinds):
        first = len(SENTENCES) * (number + 1)
        found = [
            difference(*pair) for pair in zip(drawn, drawn[first : first + len(SENTENCES)], strict=False)
        ]
        if kind in CLAIMED:
            assert max(found) <= CLAIMED[kind], (kind, found)
        else:
            assert min(found) > 0.01, (kind, found)


def test_texts_that_would_break_a_page_do_not(
    draw: pictures.BrowserPictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "HEIGHT", 300)  # a page that not all texts fit on
    texts = [
        "plain",
        "",
        "<hr></p><script>1</script>&amp;",
        "a\x00b\x08c",
        "\u202eopen",
        "\ud800",
        "x " * 900,
        "plain",
    ]
    drawn = draw(texts)
    assert len(drawn) == len(texts)
    assert (drawn[0] == drawn[-1]).all()
    assert difference(drawn[0], drawn[1]) > 0.05
    assert len(drawn[-2]) > 200  # cut where the page ends


def test_the_measure_asks_for_both_texts(draw: pictures.BrowserPictures) -> None:
    measure, full = parse_measure("picture")
    assert full == "picture:sans-serif"
    fields = (("text", SENTENCES[0]),)
    results = [
        Result(0, "success", 1, fields, 0, disguised(SENTENCES[0], "word-joiner")),
        Result(1, "success", 1, fields, 0, "something else"),
    ]
    same, other = measure.values(lambda items: list(draw(items)), results)
    assert same == 0.0
    assert isinstance(other, float)
    assert other > 0.05
