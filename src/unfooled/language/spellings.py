"""Spellings of one word that all are right: American and British ones, with an accent or without.

By hand: the stems that have two spellings, and the endings with which they keep them. What is made of other
stems by analogy would be a misspelling.
"""

from __future__ import annotations

import re
from functools import lru_cache

# color, colour: but humorous and honorary have one spelling.
_OR = """
ardor armor behavior candor clamor color demeanor endeavor favor flavor fervor glamor harbor honor
humor labor neighbor odor parlor rancor rigor rumor savior savor splendor tumor valor vapor vigor
"""
_OR_ENDINGS = (
    "",
    "s",
    "ed",
    "ing",
    "ful",
    "fully",
    "less",
    "able",
    "ably",
    "ite",
    "ites",
    "y",
    "hood",
    "hoods",
    "al",
)
# realize, realise
_IZE = """
apolog agon antagon author brutal capital categor character civil critic desensit dramat emphas
energ fantas fetish final general glamor harmon human ideal immortal individual intellectual mesmer
memor minim modern moral organ patron popular pulver rational real recogn revital revolution
romantic sanit satir scrutin sensational sentimental social special standard steril styl summar
symbol sympath synthes tantal terror theor traumat trivial urban util vandal verbal victim visual
"""
_IZE_ENDINGS = ("e", "ed", "es", "ing", "ingly", "er", "ers", "ation", "ations")
_PAIRS = """
theater/theatre theaters/theatres center/centre centers/centres centered/centred specter/spectre
specters/spectres somber/sombre luster/lustre lackluster/lacklustre meager/meagre caliber/calibre
maneuver/manoeuvre maneuvers/manoeuvres maneuvering/manoeuvring dialog/dialogue dialogs/dialogues
catalog/catalogue monolog/monologue monologs/monologues analog/analogue marvelous/marvellous
marvelously/marvellously traveled/travelled traveling/travelling traveler/traveller
travelers/travellers labeled/labelled modeled/modelled canceled/cancelled leveled/levelled
fueled/fuelled channeled/channelled channeling/channelling rivaled/rivalled unrivaled/unrivalled
unraveled/unravelled unraveling/unravelling jewelry/jewellery skillful/skilful skillfully/skilfully
willful/wilful willfully/wilfully fulfill/fulfil fulfills/fulfils fulfillment/fulfilment
enthrall/enthral enthralls/enthrals installment/instalment installments/instalments
counselor/counsellor equaled/equalled signaled/signalled analyze/analyse analyzed/analysed
analyzes/analyses analyzing/analysing paralyze/paralyse paralyzed/paralysed paralyzing/paralysing
catalyze/catalyse gray/grey grays/greys grayer/greyer grayish/greyish skeptic/sceptic
skeptics/sceptics skeptical/sceptical skeptically/sceptically skepticism/scepticism
judgment/judgement judgments/judgements defense/defence defenses/defences offense/offence
offenses/offences pretense/pretence pretenses/pretences pajamas/pyjamas mold/mould molds/moulds
molded/moulded moldy/mouldy smolder/smoulder smoldering/smouldering smolders/smoulders cozy/cosy
cozily/cosily aging/ageing likable/likeable unlikable/unlikeable likability/likeability
lovable/loveable unlovable/unloveable sizable/sizeable ok/okay artifact/artefact artifacts/artefacts
donut/doughnut donuts/doughnuts esthetic/aesthetic medieval/mediaeval adviser/advisor
advisers/advisors acknowledgment/acknowledgement fetus/foetus plow/plough plows/ploughs
plowing/ploughing tidbit/titbit tidbits/titbits sulfur/sulphur ax/axe learned/learnt spoiled/spoilt
dreamed/dreamt burned/burnt leaped/leapt leaned/leant afterward/afterwards backward/backwards
toward/towards among/amongst while/whilst cliche/cliché cliches/clichés cliched/clichéd
cliche-ridden/cliché-ridden naive/naïve naively/naïvely naivete/naïveté cafe/café cafes/cafés
fiance/fiancé fiancee/fiancée passe/passé blase/blasé deja/déjà melange/mélange decor/décor
risque/risqué protege/protégé facade/façade facades/façades soiree/soirée saute/sauté pate/pâté
entree/entrée emigre/émigré emigres/émigrés roue/roué ingenue/ingénue melee/mêlée cortege/cortège
precis/précis seance/séance seances/séances voila/voilà
"""


def other_spellings(word: str) -> tuple[str, ...]:
    """In small letters; none for most words."""
    return _all().get(word.lower(), ())


@lru_cache(maxsize=1)
def _all() -> dict[str, tuple[str, ...]]:
    pairs = [pair.split("/") for pair in re.split(r"\s+", _PAIRS.strip())]
    pairs += [[stem + end, stem[:-1] + "ur" + end] for stem in _OR.split() for end in _OR_ENDINGS]
    pairs += [[f"{stem}iz{end}", f"{stem}is{end}"] for stem in _IZE.split() for end in _IZE_ENDINGS]
    found: dict[str, tuple[str, ...]] = {}
    for american, british in pairs:
        if american not in found or british not in found[american]:
            found[american] = (*found.get(american, ()), british)
            found[british] = (*found.get(british, ()), american)
    return found
