"""What a reader of the inbox asked to see: whose, and which words. Addresses carry it, and so does the stream of an open page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from urllib.parse import parse_qs, urlencode, urlsplit

from django.db.models import Q
from django.http import HttpRequest

from runs import folding
from runs.engine.tools import TOOLS

# key, word, and what it is called in a sentence
VIEWS: Mapping[str, tuple[str, str]] = {
    "mine": ("Mine", "waits for you and is held by nobody else"),
    "": ("My groups", "waits for you or another of a group that you are in"),
    "others": ("Others", "waits on others"),
    "all": ("All", "waits"),
}
TERMS = 6
MOST = 200  # characters
PLACES = ("/inbox", "/actions/")  # whose addresses carry a filter


@dataclass(frozen=True)
class Wanted:
    """A filter of the inbox. `view` is a key of VIEWS; each word of `q` must be found; `team`: of the runs of the team of this name."""

    view: str = ""
    q: str = ""
    team: str = ""

    @property
    def suffix(self) -> str:
        """The end of an address that carries it: “?view=mine&q=refund”, or nothing."""
        kept = {name: value for name, value in (("view", self.view), ("q", self.q), ("team", self.team)) if value}
        return f"?{urlencode(kept)}" if kept else ""

    @property
    def more(self) -> str:
        """The same, for an address that has a query already."""
        return self.suffix.replace("?", "&", 1)

    @property
    def is_everything(self) -> bool:
        return not self.view and not self.q and not self.team

    @property
    def says(self) -> str:
        """What it asks for, as the end of a sentence that begins with a thing."""
        return VIEWS[self.view][1]

    def filter(self) -> Q:
        """Actions in whose subject or run's title, as anybody sees them, or whose agent, tool or group each word is found."""
        terms = self.q.split()[:TERMS]
        of_team = Q(run__team__name__iexact=self.team) if self.team else Q()
        return reduce(and_, map(_holds, terms), of_team)


EVERYTHING = Wanted()


def read(query: Mapping[str, str]) -> Wanted:
    """The filter of an address. What makes no sense is left out."""
    view = query.get("view", "")
    q, team = (" ".join(query.get(name, "").replace("\0", "").split()) for name in ("q", "team"))
    return Wanted(view if view in VIEWS else "", q[:MOST], team[:60])


def of_query(query: str) -> Wanted:
    """The filter of the query of an address, as it is written there."""
    return read({name: values[-1] for name, values in parse_qs(query).items()})


def asked(request: HttpRequest) -> Wanted:
    """The filter of the inbox that a request comes from: of its own address, else of the page that it was made on."""
    if {"view", "q", "team"} & request.GET.keys():
        return read(request.GET.dict())
    try:
        page = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "")
    except ValueError:  # it is no address
        return EVERYTHING
    return of_query(page.query) if page.path.startswith(PLACES) else EVERYTHING


def _holds(term: str) -> Q:
    alike = folding.pattern(term)
    tools = [name for name, tool in TOOLS.items() if term.lower() in tool.title.lower()]
    by_words = Q(subject__rendition__regex=alike) | Q(run__title__rendition__regex=alike)
    return (
        by_words
        | Q(run__agent__name__regex=alike)
        | Q(policy__group__name__regex=alike)
        | Q(tool__icontains=term)
        | Q(tool__in=tools)
        | Q(run__ref__iexact=term)
    )
