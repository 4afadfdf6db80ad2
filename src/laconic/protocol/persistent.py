"""Maps and sets of which every version stays valid: a change shares all but a few nodes with the version before it.

They behave as dict and set do, in the order in which keys came, but a change gives a new version and takes steps in
the logarithm of the size. So a state is a value however large it is, and an event that changes one entry copies little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

#: A leaf has entries by key, each with its place in the order; a branch has children by the next bits of the hash.
Leaf = dict[Any, tuple[int, Any]]
Node = Leaf | tuple[Any, ...]
_BITS = 4
_WIDTH = 2**_BITS
_DEEPEST = 64 // _BITS


def changed(value: T, **fields: Any) -> T:
    """A copy of a value with some of its fields changed; `dataclasses.replace` would make and check it anew."""
    known = value.__dict__
    new = object.__new__(type(value))
    both = new.__dict__
    both.update(known)
    both.update(fields)
    if len(both) > len(known):
        raise TypeError(f"{type(value).__name__} has no {', '.join(sorted(fields.keys() - known.keys()))}")
    return new


def _child(key: object, depth: int) -> int:
    at: int = (hash(key) >> (_BITS * depth)) % _WIDTH
    return at


def _grown(leaf: Leaf, depth: int) -> Node:
    """A node with these entries, split as far as they are too many for one leaf."""
    if len(leaf) <= _WIDTH or depth == _DEEPEST:
        return leaf
    parts: list[Leaf] = [{} for _ in range(_WIDTH)]
    for key, entry in leaf.items():
        parts[_child(key, depth)][key] = entry
    return tuple(_grown(part, depth + 1) for part in parts)


def _changed(node: Node, key: object, entry: tuple[int, Any] | None, depth: int = 0) -> Node:
    """The node with another entry for a key; without one if ``entry`` is None."""
    if isinstance(node, tuple):
        at = _child(key, depth)
        return (*node[:at], _changed(node[at], key, entry, depth + 1), *node[at + 1 :])
    if entry is not None:
        return _grown({**node, key: entry}, depth)
    fewer = node.copy()
    fewer.pop(key, None)
    return fewer


def _entries(node: Node) -> Iterator[tuple[int, Any]]:
    """The keys of a node, each with its place in the order."""
    if isinstance(node, tuple):
        for child in node:
            yield from _entries(child)
    else:
        yield from ((place, key) for key, (place, _) in node.items())


@dataclass(frozen=True, eq=False)
class Map(Mapping[K, V], Generic[K, V]):
    """A dict that never changes: `put` and `without` give the next version.

    >>> first = Map.of({"a": 1})
    >>> dict(first.put("b", 2).without("a")), dict(first)
    ({'b': 2}, {'a': 1})
    """

    _root: Node
    _size: int
    _next: int  # the place of the next key that is new

    @classmethod
    def of(cls, entries: Mapping[K, V]) -> Map[K, V]:
        """A map with these entries."""
        leaf = {key: (place, value) for place, (key, value) in enumerate(entries.items())}
        return cls(_grown(leaf, 0), len(leaf), len(leaf))

    def put(self, key: K, value: V) -> Map[K, V]:
        """The version with this entry; a key that is known keeps its place."""
        known = self._entry(key)
        place = self._next if known is None else known[0]
        root = _changed(self._root, key, (place, value))
        return Map(root, self._size + (known is None), self._next + (known is None))

    def without(self, key: K) -> Map[K, V]:
        """The version without a key, which need not be there."""
        if self._entry(key) is None:
            return self
        return Map(_changed(self._root, key, None), self._size - 1, self._next)

    def _entry(self, key: object) -> tuple[int, Any] | None:
        node, depth = self._root, 0
        while isinstance(node, tuple):
            node, depth = node[_child(key, depth)], depth + 1
        return node.get(key)

    def __getitem__(self, key: K) -> V:
        entry = self._entry(key)
        if entry is None:
            raise KeyError(key)
        value: V = entry[1]
        return value

    def __contains__(self, key: object) -> bool:
        return self._entry(key) is not None

    def __iter__(self) -> Iterator[K]:
        return (key for _, key in sorted(_entries(self._root), key=lambda entry: entry[0]))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Map.of({dict(self)!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Group(Set[K], Generic[K]):
    """A set that never changes, in the order in which its members came.

    >>> sorted(Group.of([3, 1]).put(2).without(3))
    [1, 2]
    """

    _keys: Map[K, None]

    @classmethod
    def of(cls, keys: Iterable[K] = ()) -> Group[K]:
        """A set of these."""
        return cls(Map.of(dict.fromkeys(keys)))

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Group[Any]:
        return cls.of(it)

    def put(self, key: K) -> Group[K]:
        """The version with this member."""
        return Group(self._keys.put(key, None))

    def without(self, key: K) -> Group[K]:
        """The version without a member, which need not be there."""
        keys = self._keys.without(key)
        return self if keys is self._keys else Group(keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"Group.of({list(self)!r})"
