"""Would another policy have earned more? Estimated from logged decisions, with intervals and warnings.

Order of reading: `logged` (what a log is), `estimators` and `intervals` (what a policy would have earned, and how sure
that is), `cautions` (reasons to mistrust it), `targets` (which policies are judged, how, and what each would choose),
`report` (the answer), `evaluating` (the whole), `material` (decisions of a log's tables or of a journal);
`evaluate_command` has `coterie evaluate`.
"""

from coterie.product.evaluation.estimators import ESTIMATORS, Sample
from coterie.product.evaluation.evaluating import compare, estimate, evaluate
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Comparison, Estimate, Evaluation
from coterie.product.evaluation.targets import Asked, Target

__all__ = [
    "ESTIMATORS",
    "Asked",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Logged",
    "Sample",
    "Target",
    "compare",
    "estimate",
    "evaluate",
]
