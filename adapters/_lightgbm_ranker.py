"""LightGBM's ranker with our objectives and metrics, trained by ``lgb.train``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ltr_objectives.adapters._bounds import Limits
from ltr_objectives.adapters._lightgbm import LIBRARY, parameter_names, processors
from ltr_objectives.adapters._names import AnyObjective, Array, Arrays, EvalMetric, Goals
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._tables import categories, is_frame, names_of, require_same_kinds
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Convention

lgb: Any = LIBRARY.load()
if TYPE_CHECKING:
    from lightgbm import Booster
    from lightgbm import LGBMRanker as Base
else:
    Base = lgb.LGBMRanker

DEFAULTS = {name: p.default for name, p in inspect.signature(lgb.LGBMModel.__init__).parameters.items()}
DEFAULTS |= {"reg_lambda": None}  # so that 0 can be told from nothing


class LGBMRanker(Ranker, Base):  # type: ignore[misc]  # fit, predict and score differ
    """``lightgbm.LGBMRanker`` with any objective and metric; queries by id or by size.

    Parameters
    ----------
    objective : str, Objective or function, optional
        Ours, such as ``"yetiloss:map"``, or LightGBM's own, such as ``"lambdarank"``; functions are those of
        ``lightgbm.LGBMRanker``. By default the one for the first metric: :func:`ltr_objectives.objective_for`.
        ``"auto"`` tries several, and keeps the best on ``eval_set``.
    eval_metric : str, Metric, function or list, optional
        Ours, such as ``"map"``; a name that only LightGBM knows, such as ``"average_precision"``, is LightGBM's, and
        functions are those of ``lightgbm.LGBMRanker.fit``. Nothing else is evaluated.
    convention : str, optional
        As in :func:`ltr_objectives.get_metric`, for our metrics: in ``evals_result_``, in ``score``, and as the one to
        train for without an ``objective``.
    bounds : mapping of metrics to numbers, optional
        Such as ``{"ndcg@10": 0.74}``: the least values on the last pair of ``eval_set``, under which the first
        ``eval_metric`` is maximised.
        The best round that keeps them is kept, also without early stopping.
    n_estimators, learning_rate, num_leaves, max_depth, min_child_samples, reg_lambda, random_state, n_jobs, **params
        As in ``lightgbm.LGBMRanker``, and ``categorical_feature``. Names that LightGBM does not know, and would ignore,
        are refused. LightGBM prints nothing unless ``verbose`` or ``verbosity`` is given. For our objectives one
        default differs: ``reg_lambda=20`` counts as 20 documents, because Hessians are those of
        :class:`ltr_objectives.UnitHessian`. An objective with a ``preset`` keeps its own Hessians and LightGBM's
        ``reg_lambda``.

    Notes
    -----
    ``predict`` gives what the trees add to ``init_score``. The ``eval_metric`` of ``fit`` replaces that of the
    constructor, which ``score`` computes.

    For equal models from run to run set ``deterministic=True`` and ``force_col_wise=True``. Early stopping is refused
    with ``boosting="dart"``, whose later rounds change the earlier ones.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = LGBMRanker(objective="yetiloss:map", n_estimators=3, min_child_samples=5).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = LIBRARY
    if TYPE_CHECKING:
        booster_: Booster
    _defaults = DEFAULTS
    _margins = "init_score", "eval_init_score"
    _aliases: ClassVar = {"eval_set": "eval_X"}

    def __init__(
        self, *, objective: AnyObjective | None = None, eval_metric: EvalMetric = None,
        convention: Convention | None = None, bounds: Limits | None = None, n_estimators: int = 100,
        learning_rate: float = 0.1, num_leaves: int = 31, max_depth: int = -1, min_child_samples: int = 20,
        reg_lambda: float | None = None, random_state: Any = None, n_jobs: int | None = None, **params: Any,
    ) -> None:  # fmt: skip
        ours: dict[str, Any] = {"objective": objective, "reg_lambda": reg_lambda}  # of more types than LightGBM's
        super().__init__(
            n_estimators=n_estimators, learning_rate=learning_rate, num_leaves=num_leaves, max_depth=max_depth,
            min_child_samples=min_child_samples, random_state=random_state, n_jobs=n_jobs, **ours, **params,
        )  # fmt: skip
        self.eval_metric = eval_metric
        self.convention = convention
        self.bounds = bounds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, those of ``lightgbm.LGBMRanker`` too."""
        names = [*self._get_param_names(), *self._other_params]
        return {name: getattr(self, name) for name in names}

    def fit(  # type: ignore[override]  # all but X and y by name
        self, X: Any, y: Array = None, *, group: Array = None, qid: Array = None, sample_weight: Array = None,
        init_score: Array = None, propensity: Array = None, position: Array = None, labels: Goals | None = None,
        init_model: Any = None, eval_set: Sequence[tuple[Any, Any]] | None = None, eval_X: Any = None,
        eval_y: Any = None, eval_names: Sequence[str] | None = None, eval_group: Arrays = None,
        eval_qid: Arrays = None, eval_sample_weight: Arrays = None, eval_init_score: Arrays = None,
        eval_labels: Sequence[Goals | None] | None = None, eval_metric: EvalMetric = None,
        eval_at: Sequence[int] | None = None, early_stopping_rounds: int | None = None,
        feature_name: Sequence[str] | str | None = None,
        categorical_feature: Sequence[str] | Sequence[int] | str | None = None,
        callbacks: Sequence[Any] | None = None, verbose: bool | int = False,
    ) -> Self:  # fmt: skip
        arguments = dict(locals())
        arguments["eval_X"] = _pairs(eval_X, arguments.pop("eval_y"))
        return self._fit_with(arguments)

    def _adopt(self, model: Any) -> None:
        self._Booster, self._n_features, self.fitted_ = model, model.num_feature(), True

    def _knows_parameter(self, name: str) -> bool:
        return name in DEFAULTS or name in LIBRARY.of_the_data or name in parameter_names()

    def _check_columns(self, X: Any) -> None:
        stored = [LIBRARY.stored(name) for name in names_of(X) or ()]  # as a model from a file has them
        super()._check_columns(X.iloc[:1].set_axis(stored, axis=1) if stored == self._fitted.columns else X)
        if self._fitted.categorical is not None:
            require_same_kinds(X, self._fitted.categorical)
        elif is_frame(X):  # a file has no numbers of columns
            found, known = [*categories(X)], len(self._Booster.pandas_categorical or ())
            message = (
                f"X has the dtype category in {found}, and the training had it in {known} columns; give it to these"
            )
            require(len(found) == known, message)

    def _given(self) -> dict[str, Any]:
        given = super()._given()
        for name, n in LIBRARY.given(LIBRARY.threads, given).items():
            given[name] = processors(n)
        return given


def _pairs(eval_X: Any, eval_y: Any) -> list[tuple[Any, Any]] | None:
    """Return the pairs of ``eval_set``, from one table and its labels, or from tuples of them."""
    if eval_X is None and eval_y is None:
        return None
    tables, targets = (() if x is None else x if isinstance(x, tuple) else (x,) for x in (eval_X, eval_y))
    require(len(tables) == len(targets), "eval_X and eval_y must both be given, with as many entries")
    return [*zip(tables, targets, strict=True)]
