"""Would another policy have earned more? Estimated from logged decisions, with intervals and warnings."""

from coterie.product.evaluation.estimators import ESTIMATORS, Sample
from coterie.product.evaluation.evaluating import estimate, evaluate
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Estimate, Evaluation

__all__ = ["ESTIMATORS", "Estimate", "Evaluation", "Logged", "Sample", "estimate", "evaluate"]
