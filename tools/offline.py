"""``python -m tools.offline site``: does a built site load anything from elsewhere, or lead to what is not there?"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself, by tag and attribute.
FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
}
#: What search reads where pages are files; without it a page with a search finds nothing.
INDEX, SEARCH = "search/search_index.js", 'data-md-component="search"'
#: Links that say something and fetch nothing.
TELLING = {"canonical", "alternate", "next", "prev", "author", "license", "help", "edit"}


class _Page(HTMLParser):
    """What a page fetches, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.leads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses in a tag."""
        given = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.leads += [given["href"]] if "href" in given else []
        elif tag != "link" or not set(given.get("rel", "").split()) <= TELLING:
            self.fetched += [given[name] for name in FETCHED.get(tag, ()) if name in given]


def complaints(site: Path) -> list[str]:
    """Everything that keeps a site from being read from a folder, without a network."""
    pages = sorted(site.rglob("*.html"))
    found = [each for page in pages for each in _of_page(page)]
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", text)
        found += [f"{sheet}: loads {address}" for address in addresses]
    searching = [page for page in pages if SEARCH in page.read_text(encoding="utf-8")]
    if searching and not (site / INDEX).is_file():
        found.append(f"{searching[0]}: has a search, and {INDEX} is not there")
    return found


def _of_page(page: Path) -> list[str]:
    seen = _Page()
    seen.feed(page.read_text(encoding="utf-8"))
    found = [f"{page}: loads {address}" for address in seen.fetched if _is_elsewhere(address)]
    local = [address for address in (*seen.fetched, *seen.leads) if not _is_elsewhere(address)]
    return found + [f"{page}: {address} is not there" for address in local if not _is_there(page, address)]


def _is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def _is_there(page: Path, address: str) -> bool:
    """Whether a file is where an address leads; a folder is none, as a browser shows no page for it."""
    parts = urlsplit(address)
    if parts.scheme or not parts.path:
        return True
    return (page.parent / unquote(parts.path)).is_file()


def main(arguments: list[str]) -> None:
    """Complain, or say that all is well."""
    (site,) = map(Path, arguments)
    found = complaints(site)
    if found:
        sys.exit("\n".join([*found[:50], f"{len(found)} complaints about {site}"]))
    print(f"{site} needs no network: {len(list(site.rglob('*.html')))} pages")


if __name__ == "__main__":
    main(sys.argv[1:])
