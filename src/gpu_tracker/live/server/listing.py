"""The list of runs as it changes."""

from __future__ import annotations

import os

from ...reports.html.page import to_frame
from .pages import show_list
from .runs import make_key
from .watching import Shown, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...reports.html.page import Page
    from .pages import Wish
    from .runs import Listing, RunDirectory


class ListSubject:
    """The runs that somebody wants to see."""

    def __init__(self, runs: RunDirectory, wish: Wish) -> None:
        self._runs = runs
        self._title = f"Runs in {os.path.basename(os.path.abspath(runs.directory))}"
        self._wish = wish
        self._seen: Listing | None = None
        self.shown = Shown()

    def advance(self, _crowd: int) -> None:
        """Look again; most looks find what was known."""
        listing = self._runs.look()
        if listing is self._seen:
            return
        self._seen = listing
        event = encode_event("page", to_frame(self._show(listing)))
        if event != self.shown.page:
            self.shown = Shown(self.shown.page_number + 1, event)

    def make_page(self) -> Page:
        """As it is now."""
        return self._show(self._runs.look())

    def _show(self, listing: Listing) -> Page:
        return show_list(listing, self._wish, self._title, make_key)
