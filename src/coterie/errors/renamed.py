"""Names that have changed: the old one works for one release, and says what the new one is."""

import warnings


def warn_renamed(old: str, new: str) -> None:
    """Warns whoever called the caller under its old name.

    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_renamed("Policy.explain", "Policy.describe")
        >>> str(caught[0].message)
        'Policy.explain is now Policy.describe; the old name goes with the next release'
    """
    message = f"{old} is now {new}; the old name goes with the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
