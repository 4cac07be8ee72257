"""Metrics from text."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from ltr_objectives.checks import check_weights
from ltr_objectives.errors import LTRError, described, did_you_mean, require, shown
from ltr_objectives.language import METRIC_FORM, METRIC_PLUS, read_values, split_list, split_metric, split_sum
from ltr_objectives.metrics.base import LEARNED, Metric
from ltr_objectives.metrics.only_evaluated import of_function
from ltr_objectives.metrics.sums import WeightedSum

OTHER_NAMES = {  # of metrics, which are not near ours
    "p": "precision", "prec": "precision", "ap": "map", "average_precision": "map", "rr": "mrr",
    "mean_reciprocal_rank": "mrr",
}  # fmt: skip


def meant_metric(written: str, known: Collection[str]) -> str:
    """Return the end of a message: the metric of ``known`` that was meant, with its options and cutoff, if one is near.

    >>> meant_metric("p@5", ["precision", "rprec"]), meant_metric("NDCG_at_10", ["ndcg"])
    ("; did you mean 'precision@5'?", "; did you mean 'ndcg@10'?")
    """
    text = re.sub(r"_at_(?=\d)", "@", written.strip())
    name, end = re.findall(r"\A(\w*)((?:\(.*\))?(?:@\d+)?(?:\[\w+\])?)", text)[0]
    ours = OTHER_NAMES.get(name.lower(), name.lower())
    if ours not in known:
        return did_you_mean(name, known, end)
    return "" if written.strip().lower().startswith(ours + end.lower()) else f"; did you mean {ours + end!r}?"


def our_metric_name(written: str) -> str | None:
    """Return the name of our metric in a text, in small letters, the first of a sum; None if one is not ours.

    >>> our_metric_name("NDCG@10[liked]"), our_metric_name("ndcg@10-"), our_metric_name("NDCG:top=10")
    ('ndcg', None, None)
    """
    splits = [split_metric(text.strip()) for _, text, _ in split_sum(written, METRIC_PLUS)]
    found = [Metric.named.get(split[0]) if split else None for split in splits]
    return splits[0][0] if splits[0] and all(cls and not cls.lower_is_better for cls in found) else None


def get_metric(metric: str | Metric | None, convention: str | None = None) -> Metric:
    """Return the metric of a name, with parameters in brackets, ``@k`` for a cutoff, and ``[goal]`` for its labels.

    As text it is written as it was given: ``str(get_metric("map(threshold=2.5)@10"))`` is ``"map(threshold=2.5)@10"``.

    A sum such as ``"ndcg@10 + 0.3*dcg(gain_type=linear)@10[revenue]"`` is a metric too, of which more is better.

    ``convention`` is "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": compute the metric as that library
    does. Options that are written in the text or in the object are kept.

    See also :func:`ltr_objectives.metric_names`.

    >>> get_metric("ndcg@10").k
    10
    >>> get_metric("ndcg@10", "lightgbm").empty
    1.0
    >>> get_metric("ndcg@10[liked]").goal
    'liked'
    >>> get_metric("ndcg(gain_type=linear)@5").gain_type
    'linear'
    """
    return _under(convention, _higher_is_better(_read(metric)))


def any_metric(metric: Any, convention: str | None = None) -> Metric:
    """Return a metric as :func:`get_metric` does, also for functions and for one of which lower is better."""
    return of_function(metric, convention) or _under(convention, _read(metric))


def _higher_is_better(metric: Metric) -> Metric:
    """Return the metric; raise if lower is better."""
    require(
        not metric.lower_is_better,
        f"lower {metric.name} is better, and it does not measure a whole ranking, so only evaluate computes it; take a "
        "ranking metric, such as 'ndcg@10', or a metric of the library itself",
    )
    return metric


def _under(convention: str | None, metric: Metric) -> Metric:
    return metric if convention is None else metric.with_convention(convention)


def _read(metric: str | Metric | None) -> Metric:
    """Return a metric, or that of a text."""
    if isinstance(metric, str):
        weights, texts, goals = zip(*split_sum(metric, METRIC_PLUS), strict=True)
        if len(texts) == 1:
            return _read_one(metric if weights[0] is not None else texts[0], goals[0])
        parts = [_higher_is_better(_read_one(*part)) for part in zip(texts, goals, strict=True)]
        weights = check_weights([1 if weight is None else weight for weight in weights], len(parts), "metrics")
        return WeightedSum(parts=tuple(zip(weights, parts, strict=True)))
    if not isinstance(metric, Metric):
        of = "a string such as 'ndcg@10' or an ltr_objectives.Metric"
        raise LTRError(f"metric must be {of}, got {described(metric)}")
    return metric


def _read_one(text: str, goal: str | None) -> Metric:
    """Return the metric of a text without weight and goal."""
    split, there = split_metric(text.strip()), ", ".join(sorted(Metric.named))
    if split is None:
        form = f"name, name@k or name(parameter=value)@k, {METRIC_FORM}; several metrics are a list"
        meant = meant_metric(text.lower(), Metric.named)
        raise LTRError(f"metric {shown(text)} is not of the form {form}; there are {there}{meant}")
    name, settings, k = split
    if name not in Metric.named:
        raise LTRError(f"unknown metric {shown(name)}; there are {there}{meant_metric(text.lower(), Metric.named)}")
    made = Metric.named[name]
    values = read_values(split_list(settings), text, name, made.options()) | ({} if k is None else {"k": k})
    metric: Metric = made(**values, goal=goal)
    return metric


def get_metrics(metrics: Iterable[str | Metric], convention: str | None = None) -> tuple[Metric, ...]:
    """Return :func:`get_metric` of each. Their names must differ, because they are the keys of the results."""
    return distinct(get_metric(metric, convention) for metric in metrics)


def distinct(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the metrics; raise if there is none, or if two have one name."""
    found = tuple(metrics)
    require(found, "give at least one metric, such as 'ndcg@10'")
    names = [str(metric) for metric in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(
        twice is None,
        f"two metrics are both called {twice}, and results are keyed by name; leave one out, or compute it by itself",
    )
    return found


def metric_to_learn(metric: str | Metric) -> Metric:
    """Return the metric of an objective, which reads the labels of the objective."""
    found = get_metric(metric)
    require(
        len(found.parts) == 1,
        f"{found} is a sum of metrics; to train for it name a sum of objectives, such as "
        "objective='yetiloss:ndcg + 0.3*yetiloss:dcg(gain_type=linear)[revenue]'",
    )
    trained = found.kind in LEARNED
    require(trained, f"no objective trains for {found.name}; take another metric, such as 'map' or 'spearman'")
    require(
        found.goal is None,
        f"metric={str(found)!r}: an objective names the labels that it reads, not its metric; as text put the goal at "
        f"the end, as in 'yetiloss:map;sigma=2[{found.goal}]', or write Mixture([objective], labels=[{found.goal!r}])",
    )
    return found
