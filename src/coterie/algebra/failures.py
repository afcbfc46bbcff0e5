"""The root of every Coterie error, and the errors that arithmetic itself can meet."""


class CoterieError(Exception):
    """Any error that Coterie raises on purpose; catch this to catch them all.

    Attributes:
        problem: What was met, with the offending value.
        rule: What is allowed.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, rule: str, remedy: str) -> None:
        super().__init__(problem, rule, remedy)
        self.problem = problem
        self.rule = rule
        self.remedy = remedy

    def __str__(self) -> str:
        end = "" if self.remedy.endswith("?") else "."
        return f"{self.problem}; {self.rule}. {self.remedy}{end}"


class NumericalError(CoterieError, ArithmeticError):
    """A computation could not be carried out in float64."""


class FactorisationError(NumericalError):
    """A matrix that must be positive definite is not, even with the largest jitter."""
