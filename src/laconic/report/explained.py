"""What the lines and dots of a frontier mean, in the same words wherever one is shown."""

from __future__ import annotations


def frontier_explained(*, cost: str = "bytes", tuned: bool = False, waiting: bool = False) -> str:
    """How to read regret against a cost; with tuned settings large, or with some that ask at every decision."""
    said = [
        f"Each dot is a setting: its regret against the {cost} of all its messages, both means over seeds.",
        "A filled dot is non-dominated: no other setting has both no more regret and no more "
        f"{cost}, those that send nothing included. A hollow one is beaten in both.",
        "The broken line goes through the filled dots, in steps: between two of them the cheaper one is the best "
        "that was found.",
        "What sends nothing is a level with its name.",
    ]
    if tuned:
        said.append("Large dots are each algorithm's tuned setting.")
    if waiting:
        said.append("Settings that ask the server at every decision are shown, and the line leaves them out.")
    return " ".join(said)
