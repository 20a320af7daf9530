"""All attacks as a list one can read: by what the attacker may see, then by what is edited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from unfooled.core.recipe import Recipe, all_recipes, load_recipe
from unfooled.plugins import unknown_name

DECISIONS, PROBABILITIES, INSIDE, TRANSLATIONS = "decisions", "probabilities", "gradients", "translations"
_SIGHTS = {
    DECISIONS: "Decisions are enough: a label for each text",
    PROBABILITIES: "Probabilities of the classes",
    INSIDE: "The inside of the model: gradients, attention or embeddings",
    TRANSLATIONS: "Models that write text",
}
LEVELS = ("characters", "words", "sentences")


class ListedAttack(NamedTuple):
    """One attack; its needs and levels are those of the version that its name alone means."""

    name: str
    versions: tuple[str, ...]  # the one that the name alone means first
    summary: str
    paper: str
    needs: tuple[str, ...]
    levels: tuple[str, ...]

    @property
    def sight(self) -> str:
        """How much of the victim the attacker must see."""
        if TRANSLATIONS in self.needs:
            return TRANSLATIONS
        if set(self.needs) - {PROBABILITIES}:
            return INSIDE
        return PROBABILITIES if self.needs else DECISIONS

    @property
    def level(self) -> str:
        return " and ".join(self.levels)

    def mentions(self, text: str) -> bool:
        return text.casefold() in f"{self.name} {self.summary} {self.paper}".casefold()


def list_attacks(*, need: str = "", level: str = "", search: str = "") -> list[ListedAttack]:
    """Those that need `need` of the victim, edit at `level` and mention `search`; groups stand together.

    `need` is a group, such as decisions, or one thing, such as attention.
    """
    every = [_listed(name, recipes) for name, recipes in _by_name()]
    needs = dict.fromkeys([*_SIGHTS, *(each for attack in every for each in attack.needs)])
    if need and need not in needs:
        raise unknown_name("need", need, list(needs))
    if level and level not in LEVELS:
        raise unknown_name("level", level, list(LEVELS))
    wanted = [
        attack
        for attack in every
        if (not need or need == attack.sight or need in attack.needs)
        and (not level or level in attack.levels)
        and attack.mentions(search)
    ]
    sights = list(_SIGHTS)
    return sorted(wanted, key=lambda attack: (sights.index(attack.sight), attack.levels, attack.name))


def _by_name() -> Iterator[tuple[str, list[Recipe]]]:
    recipes = sorted(all_recipes(), key=lambda recipe: recipe.name)
    for name, group in groupby(recipes, key=lambda recipe: recipe.name):
        yield name, list(group)


def _listed(name: str, recipes: Sequence[Recipe]) -> ListedAttack:
    meant = load_recipe(name)
    first = meant if meant in recipes else recipes[0]
    versions = [first.version, *(recipe.version for recipe in recipes if recipe is not first)]
    return ListedAttack(
        name, tuple(dict.fromkeys(versions)), first.summary, first.paper, first.requires(), first.levels
    )


def as_text(attacks: Sequence[ListedAttack]) -> str:
    """One line for each attack below the headings of its groups."""
    if not attacks:
        return "no attack is like that"
    width = max(len(attack.name) for attack in attacks)
    lines: list[str] = []
    for sight, seen in groupby(attacks, key=lambda attack: attack.sight):
        lines += ["", _SIGHTS[sight]]
        for level, edited in groupby(seen, key=lambda attack: attack.level):
            lines.append(f"  {level}")
            for attack in edited:
                versions = " ".join(f"@{version}" for version in attack.versions)
                lines.append(f"    {attack.name:{width}}  {attack.summary}  ({versions})")
    return "\n".join(lines[1:])
