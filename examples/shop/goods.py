"""What the shop has, and how a visitor and a product become the features of an arm."""

from __future__ import annotations

from dataclasses import dataclass

#: How many products a page shows.
SHELF = 3


@dataclass(frozen=True)
class Product:
    """A product: how sweet it is and how lively it makes, between 0 and 1, is all that the agent is told of it."""

    name: str
    picture: str
    sweet: float
    lively: float


PRODUCTS = (
    Product("Camomile tea", "🌼", 0.10, 0.05),
    Product("Black tea", "🫖", 0.05, 0.55),
    Product("Espresso", "☕", 0.10, 1.00),
    Product("Hot chocolate", "🍫", 0.90, 0.30),
    Product("Lemonade", "🍋", 0.70, 0.60),
    Product("Cola", "🥤", 1.00, 0.90),
    Product("Honey milk", "🍯", 0.75, 0.00),
    Product("Water", "💧", 0.00, 0.20),
    Product("Oat biscuit", "🍪", 0.55, 0.25),
    Product("Cheese roll", "🧀", 0.20, 0.35),
    Product("Chilli nuts", "🌶️", 0.30, 0.85),
    Product("Fruit salad", "🍓", 0.60, 0.45),
)


@dataclass(frozen=True)
class Visitor:
    """A visitor: the hour as part of the day, and the age as part of a century."""

    hour: float
    age: float


def arms_for(visitor: Visitor, products: tuple[Product, ...] = PRODUCTS) -> list[list[float]]:
    """One arm for each product: what is known of the visitor, beside what is known of the product."""
    return [[visitor.hour, visitor.age, each.sweet, each.lively] for each in products]
