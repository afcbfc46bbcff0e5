"""What do we believe: one Gaussian belief over users x arms, by several engines that agree."""

from coterie.models.base import Model
from coterie.models.choose import ENGINES, EngineChoice, choose_engine, make_model, restore_model
from coterie.models.dense import DenseModel
from coterie.models.exact import ExactModel
from coterie.models.features import FeaturesModel
from coterie.models.grid import GridModel
from coterie.models.history import History
from coterie.models.hybrid import HybridModel, paper_switch
from coterie.models.linear import LinearModel

__all__ = [
    "ENGINES",
    "DenseModel",
    "EngineChoice",
    "ExactModel",
    "FeaturesModel",
    "GridModel",
    "History",
    "HybridModel",
    "LinearModel",
    "Model",
    "choose_engine",
    "make_model",
    "paper_switch",
    "restore_model",
]
