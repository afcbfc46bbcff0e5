"""Who is near whom: `UserGraph`, its Laplacian and spectrum, and families of graphs.

Order of reading: `adjacency` (the stored form and its checks), `build` (inputs), `laplacian`, `spectrum`,
`edits`, `storage` (looking up), `random_pairs`, `graph` (the class) and `families`.
"""

from coterie.graphs.edits import Difference, GraphChange
from coterie.graphs.families import (
    FAMILIES,
    barabasi_albert,
    complete,
    empty,
    erdos_renyi,
    grid,
    make_graph,
    rbf,
    ring,
    stochastic_block_model,
    watts_strogatz,
)
from coterie.graphs.graph import UserGraph
from coterie.graphs.laplacian import Components
from coterie.graphs.spectrum import Spectrum

__all__ = [
    "FAMILIES",
    "Components",
    "Difference",
    "GraphChange",
    "Spectrum",
    "UserGraph",
    "barabasi_albert",
    "complete",
    "empty",
    "erdos_renyi",
    "grid",
    "make_graph",
    "rbf",
    "ring",
    "stochastic_block_model",
    "watts_strogatz",
]
