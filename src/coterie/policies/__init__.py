"""What do we choose: scores, widths, the named recipes."""

from coterie.policies.adaptation.followers import SpectralSchedule
from coterie.policies.factory.registry import list_policies, make_policy
from coterie.policies.policy import Policy
from coterie.policies.rules.widths import TheoryWidth
from coterie.policies.slates import rank

__all__ = ["Policy", "SpectralSchedule", "TheoryWidth", "list_policies", "make_policy", "rank"]
