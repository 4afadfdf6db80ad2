"""What the lines and dots of a frontier mean, in the same words wherever one is shown."""

from __future__ import annotations


def frontier_explained(*, cost: str = "bytes", tuned: bool = False, waiting: bool = False) -> str:
    """How to read regret against a cost; with tuned settings large, or with some that ask at every decision."""
    rivals = " that chooses without a round trip" if waiting else ""
    said = [
        f"Each dot is a setting: regret against the {cost} of all its messages, means over seeds.",
        f"Filled dots are non-dominated: no other setting{rivals} has both no more regret and no more {cost}, those "
        "that send nothing included. Hollow dots are beaten by one that has.",
        "The broken line joins the filled dots in steps, as between two of them the cheaper one is the best found.",
        "An algorithm that sends nothing is a horizontal line with its name.",
    ]
    if tuned:
        said.append("Large dots are each algorithm's tuned setting.")
    if waiting:
        said.append("Settings that ask the server at every decision are shown, and the line leaves them out.")
    return " ".join(said)
