"""Changes of the graph that a posterior can follow at less than the cost of conditioning it again."""

import numpy as np
import scipy.sparse as sp

from coterie.graphs import UserGraph
from coterie.kernels import PoolKernel
from coterie.kernels.links import AddedEdges, GraphCovariance, Link, make_link
from coterie.models import Model
from coterie.models.choose import SMALL_GRID


def follow_graph(model: Model, before: UserGraph, after: UserGraph, form: GraphCovariance | None) -> bool:
    """Lets a model follow a change of the graph; returns whether it could. Where it could not, it has not changed.

    Args:
        model: On the graph as it was.
        before: That graph.
        after: The graph as it is.
        form: What the user covariance is made of, if its changes have a closed form.
    """
    if model.follows_graph:
        change = after.changes_since(before)
        return change is not None and model.regraph(change)
    link = link_between(before, after, form, model)
    return link is not None and model.relink(link)


def link_between(before: UserGraph, after: UserGraph, form: GraphCovariance | None, model: Model) -> Link | None:
    """Returns what a change of graph does to the user covariance, if users and edges were only added. O(n^2 edges).

    None where an edge was taken away or made lighter, where users left, where the covariance has no such form, and
    where a small grid grows so much that another engine may be better from then on.
    """
    kernel, newcomers = model.kernel, after.n_users - before.n_users
    if form is None or not isinstance(kernel, PoolKernel) or after.users[: before.n_users] != before.users:
        return None
    if kernel.n_pairs <= SMALL_GRID < after.n_users * kernel.n_arms:
        return None
    edges = added_edges(before, after)
    if edges is None:
        return None
    laplacian = before.laplacian().copy()
    laplacian.resize((after.n_users, after.n_users))
    return make_link(form, kernel.user_cov, laplacian, edges, newcomers=newcomers)


def added_edges(before: UserGraph, after: UserGraph) -> AddedEdges | None:
    """Returns the weight that was added to edges; none if some was taken away. O(edges).

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> added_edges(graph, graph.add_user("cy", {"bo": 2.0})[0])
        AddedEdges(rows=array([1]), others=array([2]), weights=array([2.]))
        >>> added_edges(graph, graph.set_edge("ana", "bo", 0.5)[0]) is None
        True
    """
    old = before.weights.copy()
    old.resize((after.n_users, after.n_users))
    more = sp.triu(after.weights - old, k=1).tocoo()
    changed = np.flatnonzero(more.data)
    if (more.data[changed] < 0).any():
        return None
    return AddedEdges(
        rows=more.row[changed].astype(np.intp), others=more.col[changed].astype(np.intp), weights=more.data[changed]
    )
