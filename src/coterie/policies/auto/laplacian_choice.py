"""Whether users' tastes vary alike: which Laplacian the learned graph part goes by.

Under the combinatorial Laplacian what is believed of a user varies by about 1 / (degree + ridge). Where a few have a
hundred friends and many have two, as on social graphs, it says that the tastes of the many vary fifty times as much as
those of the few. Rewards do not bear that out: on Last.fm evidence would rather do without the graph. Under the
normalised Laplacian tastes vary about alike. Where degrees hardly differ the two are the same but for a factor.
"""

import numpy as np

from coterie.contracts import Array

UNEVEN = 0.75


def is_uneven(degrees: Array) -> bool:
    """Returns whether degrees spread by more than three quarters of their mean: the Laplacian is then normalised.

    Examples:
        >>> is_uneven(np.array([2.0, 3.0, 4.0])), is_uneven(np.array([1.0, 1.0, 1.0, 9.0]))
        (False, True)
    """
    return bool(np.std(degrees) > UNEVEN * np.mean(degrees))
