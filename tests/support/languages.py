"""Sentences in many languages."""

from __future__ import annotations

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
