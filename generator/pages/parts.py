"""Pages that list all models, cut into parts where the models are many: the first at the page's own address.

See contract: publication, "Many models".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from generator.edition import paths
from generator.edition.edition import FEW_MODELS
from generator.edition.site_pages import part_count

T = TypeVar("T")


@dataclass(frozen=True)
class ListPart:
    """One part of a list of models: its page, its number from 1, how many there are."""

    page: str
    first_page: str
    number: int
    of: int

    @property
    def first(self) -> bool:
        """Whether this is the page itself, which holds what is said once."""
        return self.number == 1

    def path(self, number: int) -> str:
        """Path of another part."""
        here = self.page if self.first else self.first_page
        return here if number == 1 else paths.part_page(self.first_page, number)

    def cut(self, rows: Sequence[T]) -> Sequence[T]:
        """Return the rows of this part; all of them where there is only one."""
        start = (self.number - 1) * FEW_MODELS
        return rows if self.of == 1 else rows[start : start + FEW_MODELS]

    def number_at(self, place: int) -> int:
        """Return the part in which the row at a place stands."""
        return 1 if self.of == 1 else place // FEW_MODELS + 1


def part_of(page: str, first_page: str, models: int) -> ListPart:
    """Return the part that a page is, of a list of so many models. The site's own index shows the first of a run's."""
    first = page in (first_page, "index.html")
    return ListPart(page, first_page, 1 if first else paths.part_number(page), part_count(models))
