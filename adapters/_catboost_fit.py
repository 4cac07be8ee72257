"""CatBoost: what a pool holds, and which training a copy of our objects is made for."""

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._callables import equal
from ltr_objectives.adapters._frames import calls_of
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.queries import sizes_of

KEEPING = threading.Lock()

# Parameters of a training: the values that we support, and what to say of any other.
UNKNOWN_ROWS = {
    "task_type": (("CPU",), "is not supported by this adapter; leave it out, or set 'CPU'"),
    "eval_fraction": (("0", "0.0"), "splits the pool; make two pools, and pass one as eval_set="),
    "save_snapshot": (
        ("False", "false", "0"),
        "would go on with any objective of ours, not only its own; leave it out, and go on from a model by init_model=",
    ),
    "boosting_type": (("Plain",), "shuffles the rows; leave it out, or set 'Plain'"),
    # these two estimate leaves over other blocks than those of the training
    "leaf_estimation_backtracking": (("No",), "is not supported by this adapter; leave it out, or set 'No'"),
    "dev_leafwise_approxes": (("False", "false", "0"), "is not supported; leave it out"),
}
# CatBoost would apply these to some forms of labels and ignore them for others
WEIGHTS_BY_CLASS = dict.fromkeys(
    ("class_weights", "auto_class_weights"), (("None",), "is not supported; give the pool weights by row or by query")
)


class Rows(NamedTuple):
    """The rows of a pool, as CatBoost hands them out: in float32."""

    labels: np.ndarray
    group: np.ndarray  # sizes
    weight: np.ndarray | None  # by row; None stands for ones
    baseline: np.ndarray | None

    def check_same(self, other: "Rows", given: str, found: str) -> None:
        """Raise unless ``other`` holds the same rows; the error calls this pool ``given``, and the other ``found``."""
        for name, ours, theirs in zip(self._fields, self, other, strict=True):
            same = equal(ours, theirs)
            require(same, f"{found} is not {given}: they differ in {name}; make the object from the pool it is used on")

    def warn_if_sorted(self) -> None:
        """Warn of labels that fall, or rise, in nearly all queries, for target statistics."""
        query = np.repeat(np.arange(len(self.group)), self.group)
        steps = np.where(np.diff(query) == 0, np.diff(self.labels), 0)
        falls, rises = (np.bincount(query[1:][way], minlength=len(self.group)) > 0 for way in (steps < 0, steps > 0))
        one_way = max((falls & ~rises).sum(), (rises & ~falls).sum())
        if one_way >= 20 and one_way > 0.9 * (falls | rises).sum():
            warn(
                f"labels are sorted in {one_way} of {len(self.group)} queries of the pool, and target statistics of "
                "categorical features read the labels of the rows above: put the rows of each query in random order"
            )


def rows_of(pool: Any, name: str = "pool") -> Rows:
    """Read a ``catboost.Pool``."""
    catboost = LIBRARIES["catboost"].load()
    found = type(pool).__name__
    require(isinstance(pool, catboost.Pool), f"{name} must be a catboost.Pool(X, y, group_id=...), got {found}")
    require(pool.num_row() > 0 and pool.has_label(), f"{name} has no labels; make it with Pool(X, y, group_id=...)")
    ids = pool.get_group_id_hash()
    require(ids is not None and len(ids) > 0, f"{name} has no queries; make it with Pool(X, y, group_id=...)")
    try:
        labels = np.asarray(pool.get_label()).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise LTRError(f"the labels of {name} must be numbers: {error}") from None
    require(labels.ndim == 1, f"{name} must have one label a row, got shape {labels.shape}")
    weight = np.asarray(pool.get_weight(), np.float32)
    baseline = np.asarray(pool.get_baseline(), np.float32)
    require(baseline.size in (0, len(labels)), f"{name} must have one baseline a row, got shape {baseline.shape}")
    group = sizes_of(np.asarray(ids))
    return Rows(labels, group, given_weight(weight), baseline.reshape(-1) if baseline.size else None)


def given_weight(weight: np.ndarray | None) -> np.ndarray | None:
    """Return the weights, or None if all are 1."""
    return None if weight is None or (weight == 1).all() else weight


def keep_weights(pool: Any, group: np.ndarray) -> None:
    """Give a pool without weights a weight of 1 for each query, so that CatBoost keeps weights in training.

    Weights of rows, even if all are 1, would rename CatBoost's metrics, and its pairwise losses warn of them.
    """
    with KEEPING:
        if given_weight(np.array(pool.get_weight())) is None and not has_group_weight(pool, group):
            pool.set_group_weight(np.ones(pool.num_row(), np.float32))


def has_group_weight(pool: Any, group: np.ndarray) -> bool:
    """Return True if a pool has weights by query, which it does not show: CatBoost then refuses other query ids."""
    shortest = int(group.argmin())
    first = int(group[:shortest].sum())
    part = pool.slice(list(range(first, first + int(group[shortest]))))
    try:
        part.set_group_id([0] * part.num_row())
    except LIBRARIES["catboost"].exception() as error:
        return "already has pairs" not in str(error)  # this is checked after the weights
    return False


class Fit(NamedTuple):
    """One call of ``fit``: its parameters, and the data it was given."""

    params: Mapping[str, Any]
    pool: Any
    eval_sets: tuple[Any, ...]
    init_model: Any

    def require_known_rows(self, any_order: bool = False) -> None:
        """Raise for parameters that leave it unknown which rows CatBoost shows, or their order unless ``any_order``."""
        require(
            str(self.params.get("thread_count")) != "0", "thread_count=0 would end the process; -1 is all processors"
        )
        self.refuse(UNKNOWN_ROWS)
        any_order = any_order or len(self.pool.get_cat_feature_indices()) == 0
        require(
            any_order or str(self.params.get("has_time")) in ("True", "true", "1"),
            "with categorical features CatBoost shuffles the rows; add has_time=True to CatBoost's parameters, which "
            "keeps the order of the pool, and changes what its own objectives learn",
        )

    def refuse(self, table: Mapping[str, tuple[tuple[str, ...], str]]) -> None:
        """Raise for parameters of the table that have other values than those allowed there."""
        for name, (allowed, otherwise) in table.items():
            value = self.params.get(name)
            require(value is None or str(value) in allowed, f"{name}={value!r} {otherwise}")


NOT_A_FIT = (
    "only a training started by fit(pool) is supported; cv, grid_search, randomized_search and others cut the pool "
    "into parts: make a pool for each part, and an object from that pool, and call fit"
)


def fit_under_way() -> Fit | None:
    """Return the ``fit`` that asks for the copy we are making, or None if the copy is for somebody else.

    CatBoost gives a user-defined object nothing of the training, but each ``fit`` starts by a deep copy of its
    parameters. Only that call knows which pool is trained on: another pool may have equal labels.
    """
    calls = calls_of(LIBRARIES["catboost"])
    if calls.names[:2] != ["_prepare_train_params", "_fit"]:
        require(calls.names[:1] not in (["cv"], ["_prepare_train_params"]), NOT_A_FIT)
        return None
    given = calls.local("_prepare_train_params")
    eval_sets = given["eval_set"] if isinstance(given["eval_set"], list) else [given["eval_set"]]
    known = tuple(s for s in eval_sets if s is not None)
    params = dict(given["self"]._init_params or {})
    if given["save_snapshot"] is not None:
        params["save_snapshot"] = given["save_snapshot"]
    return Fit(params, given["X"], known, given["init_model"])
