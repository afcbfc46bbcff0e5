"""Would another policy have earned more? Estimated from logged decisions, with intervals and warnings.

Order of reading: `logged` (what a log is), `asked` (what is asked of it), `targets` (what a policy would choose),
`estimators`, `intervals` and `cautions` (what it would have earned, how sure that is, and what speaks against it),
`judging` and `report` (the answer for one policy), `evaluating` and `comparing` (for one and for several); `command`
has `coterie evaluate`.
"""

from coterie.product.evaluation.asked import Asked, Target
from coterie.product.evaluation.comparing import Comparison, compare
from coterie.product.evaluation.estimators import ESTIMATORS, Sample
from coterie.product.evaluation.evaluating import evaluate
from coterie.product.evaluation.judging import estimate
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Estimate, Evaluation

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
