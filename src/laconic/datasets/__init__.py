"""Data sets: a table of them, a cache, downloads with pinned checksums, and loaders for the publishers' formats."""

from laconic.datasets.arrivals import Arrival, LicenceNotAccepted, edition_of, fetch, import_file
from laconic.datasets.cache import Found, MissingData, Source, data_dir, find, prepared_dir, require, unavailable
from laconic.datasets.extras import MissingExtra
from laconic.datasets.known import DATASETS, Dataset, Licence, Part, editions
from laconic.datasets.triples import Triples, read_triples

__all__ = [
    "DATASETS",
    "Arrival",
    "Dataset",
    "Found",
    "Licence",
    "LicenceNotAccepted",
    "MissingData",
    "MissingExtra",
    "Part",
    "Source",
    "Triples",
    "data_dir",
    "edition_of",
    "editions",
    "fetch",
    "find",
    "import_file",
    "prepared_dir",
    "read_triples",
    "require",
    "unavailable",
]
