"""Kernel bandits that learn together and say little.

Examples:
    >>> from laconic import DisKernelUCB, Gaussian, LaconicUCB, compare
    >>> k = Gaussian(gamma=1.0)
    >>> results = compare([LaconicUCB(k), DisKernelUCB(k)], problem="catalogue", clients=4, rounds=10, seeds=1)
    >>> [row.algorithm for row in results.rows]
    ['LaconicUCB', 'DisKernelUCB']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laconic.release import __version__ as __version__

if TYPE_CHECKING:
    from laconic.algorithms import (
        Algorithm,
        ApproxDisKernelUCB,
        AskServer,
        DisKernelUCB,
        DisLinUCB,
        LaconicUCB,
        NKernelUCB,
        OneKernelUCB,
        Random,
    )
    from laconic.errors import InputError, KernelError, LaconicError, ProblemError, ProtocolError
    from laconic.experiments.compare import compare
    from laconic.experiments.frontier import Frontier, frontier
    from laconic.experiments.grid import grid
    from laconic.experiments.results import Results
    from laconic.exploration import (
        UCB,
        Chance,
        Choice,
        EpsilonFloor,
        Exploration,
        Fixed,
        Greedy,
        Shown,
        Softmax,
        Theory,
        Thompson,
    )
    from laconic.kernels import Gaussian, Kernel, Linear, Matern, Polynomial, RationalQuadratic
    from laconic.papers.presets import preset
    from laconic.problems import (
        Catalogue,
        Cosine,
        FromFunctions,
        Log,
        PolynomialReward,
        Problem,
        Recorded,
        Replay,
        Round,
    )
    from laconic.problems.clustered import Clustered, Magic, Mushroom, Shuttle
    from laconic.problems.ratings import MovieLens, Ratings, Yelp
    from laconic.problems.recorded import save_recorded
    from laconic.protocol.client import Client
    from laconic.protocol.digests import AllPoints, Atoms, Digest
    from laconic.protocol.learner import Decision
    from laconic.protocol.ledger import Ledger
    from laconic.protocol.phases import AgreeOnDictionary, Phase, ShareData, ShareStatistics
    from laconic.protocol.plan import Plan
    from laconic.protocol.restoring import restore_client, restore_server, snapshot_client, snapshot_server
    from laconic.protocol.roster import Patience
    from laconic.protocol.server import Server
    from laconic.runtimes import Run, run
    from laconic.runtimes.service.agent import Agent as Agent
    from laconic.runtimes.service.coordinator import Coordinator as Coordinator
    from laconic.runtimes.service.coordinator import Limits as Limits
    from laconic.runtimes.service.coordinator import Serving as Serving
    from laconic.runtimes.service.security import TLS as TLS
    from laconic.runtimes.service.sidecar import Sidecar as Sidecar
    from laconic.suggestion import Suggestion, suggest, suggest_for
    from laconic.triggers import Always, Determinant, Every, Never, Trigger, Variance


#: Where each public name lives; it is imported when first used, so that ``import laconic`` costs next to nothing.
_HOMES = {
    "laconic.algorithms": (
        "Algorithm",
        "ApproxDisKernelUCB",
        "AskServer",
        "DisKernelUCB",
        "DisLinUCB",
        "LaconicUCB",
        "NKernelUCB",
        "OneKernelUCB",
        "Random",
    ),
    "laconic.errors": ("InputError", "KernelError", "LaconicError", "ProblemError", "ProtocolError"),
    "laconic.experiments.compare": ("compare",),
    "laconic.experiments.frontier": ("Frontier", "frontier"),
    "laconic.experiments.grid": ("grid",),
    "laconic.experiments.results": ("Results",),
    "laconic.papers.presets": ("preset",),
    "laconic.exploration": (
        "UCB",
        "Chance",
        "Choice",
        "EpsilonFloor",
        "Exploration",
        "Fixed",
        "Greedy",
        "Shown",
        "Softmax",
        "Theory",
        "Thompson",
    ),
    "laconic.kernels": ("Gaussian", "Kernel", "Linear", "Matern", "Polynomial", "RationalQuadratic"),
    "laconic.problems": (
        "Catalogue",
        "Cosine",
        "FromFunctions",
        "Log",
        "PolynomialReward",
        "Problem",
        "Recorded",
        "Replay",
        "Round",
    ),
    "laconic.problems.clustered": ("Clustered", "Magic", "Mushroom", "Shuttle"),
    "laconic.problems.ratings": ("MovieLens", "Ratings", "Yelp"),
    "laconic.problems.recorded": ("save_recorded",),
    "laconic.protocol.client": ("Client",),
    "laconic.protocol.digests": ("AllPoints", "Atoms", "Digest"),
    "laconic.protocol.learner": ("Decision",),
    "laconic.protocol.ledger": ("Ledger",),
    "laconic.protocol.phases": ("AgreeOnDictionary", "Phase", "ShareData", "ShareStatistics"),
    "laconic.protocol.plan": ("Plan",),
    "laconic.protocol.restoring": ("restore_client", "restore_server", "snapshot_client", "snapshot_server"),
    "laconic.protocol.roster": ("Patience",),
    "laconic.protocol.server": ("Server",),
    "laconic.runtimes": ("Run", "run"),
    "laconic.suggestion": ("Suggestion", "suggest", "suggest_for"),
    "laconic.triggers": ("Always", "Determinant", "Every", "Never", "Trigger", "Variance"),
}
#: These need the extra ``laconic[service]``, so ``from laconic import *`` leaves them out.
_WITH_SERVICE = {
    "laconic.runtimes.service.agent": ("Agent",),
    "laconic.runtimes.service.coordinator": ("Coordinator", "Limits", "Serving"),
    "laconic.runtimes.service.security": ("TLS",),
    "laconic.runtimes.service.sidecar": ("Sidecar",),
}
_HOME_OF = {name: home for homes in (_HOMES, _WITH_SERVICE) for home, names in homes.items() for name in names}

__all__ = [
    "UCB",
    "AgreeOnDictionary",
    "Algorithm",
    "AllPoints",
    "Always",
    "ApproxDisKernelUCB",
    "AskServer",
    "Atoms",
    "Catalogue",
    "Chance",
    "Choice",
    "Client",
    "Clustered",
    "Cosine",
    "Decision",
    "Determinant",
    "Digest",
    "DisKernelUCB",
    "DisLinUCB",
    "EpsilonFloor",
    "Every",
    "Exploration",
    "Fixed",
    "FromFunctions",
    "Frontier",
    "Gaussian",
    "Greedy",
    "InputError",
    "Kernel",
    "KernelError",
    "LaconicError",
    "LaconicUCB",
    "Ledger",
    "Linear",
    "Log",
    "Magic",
    "Matern",
    "MovieLens",
    "Mushroom",
    "NKernelUCB",
    "Never",
    "OneKernelUCB",
    "Patience",
    "Phase",
    "Plan",
    "Polynomial",
    "PolynomialReward",
    "Problem",
    "ProblemError",
    "ProtocolError",
    "Random",
    "Ratings",
    "RationalQuadratic",
    "Recorded",
    "Replay",
    "Results",
    "Round",
    "Run",
    "Server",
    "ShareData",
    "ShareStatistics",
    "Shown",
    "Shuttle",
    "Softmax",
    "Suggestion",
    "Theory",
    "Thompson",
    "Trigger",
    "Variance",
    "Yelp",
    "compare",
    "frontier",
    "grid",
    "preset",
    "restore_client",
    "restore_server",
    "run",
    "save_recorded",
    "snapshot_client",
    "snapshot_server",
    "suggest",
    "suggest_for",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'laconic' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
