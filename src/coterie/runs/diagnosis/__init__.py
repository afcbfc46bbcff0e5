"""What a log says before any experiment: are friends alike, is the graph in the rewards, and when would it pay off.

Order of reading: `outcomes` (what is looked at), `homophily`, `graph_evidence`, `feature_value`, `payoff`, `diagnosis`
(all of it), then `answers`, `pictures` and `page`.
"""

from coterie.runs.diagnosis.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
