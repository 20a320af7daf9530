"""Which language texts are in."""

from __future__ import annotations

import pytest

from unfooled.data.language import language_of, main_script

TEXTS = {
    "English": ("The film is a real success, and the actors are excellent.", "I did not like it at all."),
    "French": (
        "Ce film est une vraie réussite, les acteurs sont excellents.",
        "Je n'ai pas du tout aimé le service, c'était très long.",
        "La chambre était propre mais le personnel peu aimable.",
    ),
    "German": (
        "Der Film ist ein großer Erfolg, und die Schauspieler sind ausgezeichnet.",
        "Das Zimmer war sauber, aber ich habe nicht gut geschlafen.",
    ),
    "Spanish": (
        "La película es muy buena y los actores son excelentes.",
        "No me gustó nada el servicio, fue muy lento.",
    ),
    "Italian": (
        "Il film è molto bello e gli attori sono bravissimi.",
        "La camera era pulita ma il personale non era gentile.",
    ),
    "Portuguese": (
        "O filme é muito bom e os atores são excelentes.",
        "O quarto estava limpo, mas o pessoal não era simpático.",
    ),
    "Dutch": (
        "De film is erg goed en de acteurs zijn uitstekend.",
        "De kamer was schoon maar het personeel was niet vriendelijk.",
    ),
    "Swedish": (
        "Filmen är mycket bra och skådespelarna är utmärkta.",
        "Jag gillade inte servicen, det tog för lång tid.",
        "Rummet var rent men personalen var inte trevlig.",
    ),
    "Danish": (
        "Filmen er meget god, og skuespillerne er fremragende.",
        "Jeg kunne ikke lide betjeningen, det tog for lang tid.",
        "Værelset var rent, men personalet var ikke venligt.",
    ),
    "Polish": (
        "Film jest bardzo dobry, a aktorzy są znakomici.",
        "Nie podobała mi się obsługa, to trwało za długo.",
        "Pokój był czysty, ale personel nie był miły.",
    ),
    "Turkish": (
        "Film çok güzel ve oyuncular çok iyi.",
        "Hizmeti hiç beğenmedim, çok uzun sürdü ve bu kadar pahalı değil.",
    ),
    "Indonesian": (
        "Film ini sangat bagus dan para aktornya hebat.",
        "Saya tidak suka pelayanannya karena terlalu lama.",
    ),
    "Chinese": ("这部电影非常好看，演员很出色。",),
    "Japanese": ("この映画はとても面白かったです。", "サービスが遅くて残念でした。"),
    "Korean": ("이 영화는 정말 재미있어요.",),
    "Greek": ("Η ταινία είναι πολύ καλή.",),
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_few_sentences_name_their_language(language: str) -> None:
    assert language_of(TEXTS[language]).name == language


def test_what_it_does_not_know_it_does_not_name() -> None:
    russian = language_of(["Этот фильм очень хороший, актёры отличные."])
    assert (russian.name, russian.script, str(russian)) == ("", "Cyrillic", "written in Cyrillic letters")
    assert language_of(["kwyjibo frobnicate blorp " * 10]).name == ""
    assert language_of(["great film"]).name == ""  # two words name nothing
    assert language_of(["", "123 !!!"]).script == ""


def test_the_script_of_a_word_is_that_of_most_of_its_letters() -> None:
    words = ["film", "Ａ１", "电影2", "фильm", "123", "ﾃﾚﾋﾞ"]
    assert [main_script(word) for word in words] == ["Latin", "Latin", "CJK", "Cyrillic", "", "Katakana"]


def test_a_mixture_is_named_by_what_most_of_it_is() -> None:
    mixed = language_of([*TEXTS["Chinese"], *TEXTS["English"] * 3])
    assert (mixed.name, mixed.share < 1.0) == ("English", True)
