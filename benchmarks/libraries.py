"""Training through each library: the same budget, the same early stopping, native objectives and ours.

To add a library, write its class and its line in ``LIBRARIES``.
"""

import abc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives import adapters
from ltr_objectives.datasets import RankingFold
from ltr_objectives.errors import LTRError
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective

Report = Callable[[float], None]  # called after each tree with the vali metric


@dataclass(frozen=True)
class Budget:
    """What every training gets."""

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50
    min_child_weight: float = 1e-3
    l2: float = 0.0
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Training:
    """A finished training."""

    scores: np.ndarray  # of the test rows, by the trees up to the best iteration
    best_iteration: int  # from 1; the first of equally good ones
    curve: list[float]  # vali metric by iteration
    seconds: float


class Library(abc.ABC):
    """A library with its data sets prepared once, so that times are those of training alone."""

    name: ClassVar[str]
    natives: ClassVar[tuple[str, ...]]
    usual: ClassVar[tuple[str, ...]]  # the default; the first is the reference
    budget: Budget
    metric: Metric

    def __init__(self, fold: RankingFold, metric: Metric, budget: Budget) -> None:
        assert fold.vali is not None
        self.train_data, self.vali_data, self.test_data = fold.train, fold.vali, fold.test
        self.metric, self.budget = metric, budget
        self.prepare()

    def run(self, objective: str | Objective, report: Report) -> Training:
        """Train; a string is a native objective."""
        curve: list[float] = []

        def watch(value: float) -> None:
            curve.append(value)
            report(value)

        start = time.perf_counter()
        try:
            predict = self.train(objective, watch)
        except LTRError:
            raise
        except Exception as error:  # each library has its own kinds
            name = objective if isinstance(objective, str) else f"our {objective.name}"
            raise LTRError(f"{self.name} could not train {name}: {error}") from error
        seconds = time.perf_counter() - start
        best = int(np.argmax(curve)) + 1
        return Training(np.asarray(predict(best), np.float64), best, curve, seconds)

    @classmethod
    def knows(cls, native: str) -> bool:
        """Whether there is a native objective of this name."""
        return native in cls.natives

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make the library's data sets."""

    @abc.abstractmethod
    def train(self, objective: str | Objective, watch: Report) -> Callable[[int], Any]:
        """Train with early stopping; return the function from a number of trees to the scores of the test rows."""


class XGBoost(Library):
    name = "xgboost"
    natives = ("rank:ndcg", "rank:map", "rank:pairwise")
    usual = ("rank:ndcg", "rank:map")

    def prepare(self) -> None:
        import xgboost as xgb

        self.dtrain = xgb.QuantileDMatrix(self.train_data.X, self.train_data.y, qid=self.train_data.qid)
        self.dvali = xgb.QuantileDMatrix(self.vali_data.X, self.vali_data.y, qid=self.vali_data.qid, ref=self.dtrain)

    def train(self, objective: str | Objective, watch: Report) -> Callable[[int], Any]:
        import xgboost as xgb

        class Watch(xgb.callback.TrainingCallback):
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                [(name, values)] = evals_log["vali"].items()  # what XGBoost would minimise is called 1-mrr or -dcg
                value = values[-1]
                watch(1.0 - value if name.startswith("1-") else -value if name.startswith("-") else value)
                return False

        b = self.budget
        params: dict[str, Any] = {
            "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": b.leaves, "max_depth": 0,
            "learning_rate": b.learning_rate, "min_child_weight": b.min_child_weight, "reg_lambda": b.l2,
            "nthread": b.threads, "seed": b.seed, "disable_default_eval_metric": 1, "verbosity": 0,
        }  # fmt: skip
        native = isinstance(objective, str)
        if native:
            params["objective"] = objective
        if objective == "rank:map":  # takes labels 0 and 1 only
            self.dtrain.set_label((self.train_data.y > 0).astype(np.float32))
        try:
            booster = xgb.train(
                params, self.dtrain, num_boost_round=b.trees, evals=[(self.dvali, "vali")], verbose_eval=False,
                obj=None if native else adapters.xgboost_objective(objective, n_threads=b.threads),
                custom_metric=adapters.xgboost_metric(self.metric, n_threads=b.threads),
                callbacks=[Watch(), xgb.callback.EarlyStopping(rounds=b.patience)],
            )  # fmt: skip
        finally:
            self.dtrain.set_label(self.train_data.y)
        return lambda trees: booster.inplace_predict(self.test_data.X, iteration_range=(0, trees))


class LightGBM(Library):
    name = "lightgbm"
    natives = ("lambdarank", "rank_xendcg")
    usual = ("lambdarank", "rank_xendcg")

    def prepare(self) -> None:
        import lightgbm as lgb

        train, vali = self.train_data, self.vali_data
        self.dtrain = lgb.Dataset(
            train.X, train.y, group=train.group, free_raw_data=False, params={"verbose": -1, "force_col_wise": True}
        )
        self.dvali = lgb.Dataset(vali.X, vali.y, group=vali.group, free_raw_data=False, reference=self.dtrain)
        self.dvali.construct()

    def train(self, objective: str | Objective, watch: Report) -> Callable[[int], Any]:
        import lightgbm as lgb

        b = self.budget
        native = isinstance(objective, str)
        params = {
            "objective": objective if native else adapters.lightgbm_objective(objective, n_threads=b.threads),
            "metric": "None", "num_leaves": b.leaves, "learning_rate": b.learning_rate,
            "min_sum_hessian_in_leaf": b.min_child_weight, "lambda_l2": b.l2,
            "num_threads": b.threads, "seed": b.seed, "verbose": -1,
            "deterministic": True, "force_col_wise": True,  # or a race between two algorithms decides the last digits
        }  # fmt: skip
        booster = lgb.train(
            params, self.dtrain, b.trees, valid_sets=[self.dvali], valid_names=["vali"],
            feval=adapters.lightgbm_metric(self.metric, n_threads=b.threads),
            callbacks=[
                lambda env: watch(env.evaluation_result_list[0][2]), lgb.early_stopping(b.patience, verbose=False),
            ],
        )  # fmt: skip
        return lambda trees: booster.predict(self.test_data.X, num_iteration=trees, num_threads=b.threads)


class CatBoost(Library):
    name = "catboost"
    natives = (
        "YetiRank", "YetiRankPairwise", "QueryRMSE", "StochasticRank", "QuerySoftMax", "PairLogit", "PairLogitPairwise",
        "LambdaMart",
    )  # fmt: skip
    usual = ("YetiRank", "YetiRank:mode=NDCG;top=10")

    @classmethod
    def knows(cls, native: str) -> bool:
        return native.partition(":")[0] in cls.natives  # settings may follow

    def prepare(self) -> None:
        import catboost

        self.dtrain, self.dvali = (
            catboost.Pool(part.X, part.y, group_id=part.qid) for part in (self.train_data, self.vali_data)
        )

    def train(self, objective: str | Objective, watch: Report) -> Callable[[int], Any]:
        import catboost

        class Watch:
            def after_iteration(self, info: Any) -> bool:
                [values] = (v for name, v in info.metrics["validation"].items() if name == type(metric).__name__)
                watch(values[-1])
                return True

        b = self.budget
        metric = adapters.catboost_metric(self.metric, self.dtrain, self.dvali, n_threads=b.threads)
        params: dict[str, Any] = {
            "eval_metric": metric, "iterations": b.trees, "depth": max(1, round(np.log2(b.leaves))),
            "learning_rate": b.learning_rate, "l2_leaf_reg": b.l2, "bootstrap_type": "No", "boosting_type": "Plain",
            "thread_count": b.threads, "random_seed": b.seed, "od_type": "Iter", "od_wait": b.patience,
            "leaf_estimation_backtracking": "No", "use_best_model": False,
            "allow_writing_files": False, "verbose": False,
        }  # fmt: skip
        if isinstance(objective, str):
            params["loss_function"] = objective
        else:
            params["loss_function"] = adapters.catboost_objective(objective, self.dtrain, n_threads=b.threads)
            params |= {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
        model = catboost.CatBoost(params).fit(self.dtrain, eval_set=self.dvali, callbacks=[Watch()])
        return lambda trees: model.predict(self.test_data.X, ntree_end=trees, thread_count=b.threads)


LIBRARIES: dict[str, type[Library]] = {library.name: library for library in (XGBoost, LightGBM, CatBoost)}
