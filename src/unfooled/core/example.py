"""One labelled text, or the reason why a row is none."""

from __future__ import annotations

from dataclasses import dataclass

from unfooled.text import Text


@dataclass(frozen=True, slots=True)
class Example:
    """One row to attack. `key` is its number in its file, from 0: the seed of everything random about it.

    Example:

        >>> example = unfooled.Example(0, (("text", "a superb film"),), label=1, edit="text")
        >>> example.text().words
        ('a', 'superb', 'film')
    """

    key: int
    content: tuple[tuple[str, str], ...]  # name and content of each field, in order
    label: int
    edit: str  # name of the field that may be edited
    problem: str = ""  # why the row cannot be attacked; such a row ends as an error, named
    uncleaned: tuple[tuple[str, str], ...] = ()  # the fields before cleaning, where that changed them
    reference: str = ""  # the right answer where that is a text, such as a person's translation

    def text(self) -> Text:
        """All fields, with the one that may be edited named."""
        return Text(dict(self.content), edit=self.edit)
