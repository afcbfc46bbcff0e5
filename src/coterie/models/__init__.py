"""What do we believe: one Gaussian belief over users x arms, by several engines that agree."""

from coterie.models.base import Model
from coterie.models.choose import ENGINES, EngineChoice, choose_engine, make_model, restore_model
from coterie.models.engines.dense import DenseModel
from coterie.models.engines.exact import ExactModel
from coterie.models.engines.features import FeaturesModel
from coterie.models.engines.grid import GridModel
from coterie.models.engines.hybrid import HybridModel, paper_switch
from coterie.models.engines.linear import LinearModel
from coterie.models.engines.sparse import SparseModel
from coterie.models.history import History

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
    "SparseModel",
    "choose_engine",
    "make_model",
    "paper_switch",
    "restore_model",
]
