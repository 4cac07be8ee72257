"""Each convention of a metric gives the value of its library."""

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import xgboost

from ltr_objectives import (
    NDCG,
    Metric,
    adapters,
    compare_scores,
    evaluate,
    get_metric,
    registry,
)


def data(seed: int, *, binary: bool = False, probability: bool = False):
    rng = np.random.default_rng(seed)
    group = np.concatenate([rng.integers(1, 15, 40), [1, 31, 32, 33, 200], rng.integers(1, 201, 15)])
    n = int(group.sum())
    labels = rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    if binary:
        labels = (labels > 1).astype(float)
    if probability:
        labels = labels / 5
    starts = np.concatenate(([0], np.cumsum(group)))[:-1]
    labels[starts[3] : starts[3] + group[3]] = 0  # one query with nothing relevant
    scores = rng.normal(size=n)
    return np.round(scores, 1), labels, group


def lightgbm_value(metric, scores, labels, group, weight=None, **more):
    lgb = pytest.importorskip("lightgbm")
    name, _, k = metric.partition("@")
    X = np.zeros((len(labels), 1))
    by_row = None if weight is None else np.repeat(weight, group)
    train = lgb.Dataset(X, labels, group=group, init_score=scores, weight=by_row)
    out = {}
    params = {
        "objective": "lambdarank", "metric": name, "eval_at": [int(k or 1000)], "verbose": -1, "num_threads": 1,
        "learning_rate": 1e-12, **more,
    }  # fmt: skip
    lgb.train(params, train, 1, valid_sets=[train], callbacks=[lgb.record_evaluation(out)])
    return next(iter(out["training"].values()))[0]


def xgboost_value(metric, scores, labels, group, weight=None, **more):
    xgb = pytest.importorskip("xgboost")
    d = xgb.DMatrix(np.zeros((len(labels), 1)), labels, base_margin=scores, group=group, weight=weight)
    name = metric.replace("precision", "pre")
    out = {}
    objective = "rank:ndcg" if more else "rank:pairwise"
    params = {"objective": objective, "eval_metric": name, "learning_rate": 0, "nthread": 1, **more}
    xgb.train(params, d, 1, evals=[(d, "d")], evals_result=out, verbose_eval=False)
    return out["d"][name][0]


def catboost_value(metric, scores, labels, group, weight=None):
    utils = pytest.importorskip("catboost.utils")
    name, _, k = metric.partition("@")
    if ":" in name:
        return utils.eval_metric(labels, scores, name, group_id=np.repeat(np.arange(len(group)), group))[0]
    theirs = {"ndcg": "NDCG", "dcg": "DCG", "map": "MAP", "mrr": "MRR", "err": "ERR", "pfound": "PFound",
              "precision": "PrecisionAt", "recall": "RecallAt"}[name]  # fmt: skip
    of_rows, settings = {"group_id": np.repeat(np.arange(len(group)), group)}, [f"top={k}"] if k else []
    if weight is not None:
        of_rows["group_weight"] = np.repeat(weight, group)
        settings.append("use_weights=true")
    asked = f"{theirs}:{';'.join(settings)}" if settings else theirs
    return utils.eval_metric(labels, scores, asked, **of_rows)[0]


def lists(scores, labels, group):
    ends = np.cumsum(group)[:-1]
    return zip(np.split(scores, ends), np.split(labels, ends), strict=True)


def sklearn_value(metric, scores, labels, group):
    sk = pytest.importorskip("sklearn.metrics")
    name, _, k = metric.partition("@")
    values = []
    for s, y in lists(scores, labels, group):
        if name in ("ndcg", "dcg"):
            score = sk.ndcg_score if name == "ndcg" else sk.dcg_score
            # a list of one document is refused, so a second one without effect is added
            values.append(score([np.append(y, 0)], [np.append(s, -1e9)], k=int(k) if k else None))
        elif 0 < y.sum() < len(y):
            values.append(sk.roc_auc_score(y, s))
    return np.mean(values)


def trec_eval_value(metric, scores, labels, group):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    name, _, k = metric.partition("@")
    theirs = {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank", "precision": "P", "recall": "recall",
              "hit": "success", "rprec": "Rprec"}[name]  # fmt: skip
    asked = f"{theirs}_cut.{k}" if k and name in ("ndcg", "map") else f"{theirs}.{k}" if k else theirs
    qrels, run = {}, {}
    for q, (s, y) in enumerate(lists(scores, labels, group)):
        # it orders equal scores by descending name, so names are such that this is the order of the rows
        names = [f"d{i:04d}" for i in range(len(y), 0, -1)]
        qrels[str(q)] = dict(zip(names, y.astype(int).tolist(), strict=True))
        run[str(q)] = dict(zip(names, s.tolist(), strict=True))
    results = pytrec_eval.RelevanceEvaluator(qrels, {asked}).evaluate(run)
    return np.mean([results[str(q)][asked.replace(".", "_")] for q in range(len(group))])


CASES = [
    (native.__name__.removesuffix("_value"), native, metric, kind)
    for native, metrics, kind in (
        (lightgbm_value, "ndcg@3 ndcg@10 ndcg map@3 map@10 map", {}),
        (xgboost_value, "ndcg ndcg@3 ndcg@100", {}),
        (xgboost_value, "map map@3 map@100 precision@3 precision@40", {"binary": True}),
        (catboost_value, "ndcg ndcg@3 dcg dcg@5 map map@3 mrr mrr@2 precision@3 precision@20 recall@3 recall@1", {}),
        (catboost_value, "err err@3 pfound pfound@3", {"probability": True}),
        (sklearn_value, "ndcg ndcg@3 dcg dcg@3", {}),
        (sklearn_value, "auc", {"binary": True}),
        (trec_eval_value, "ndcg ndcg@5 map map@5 mrr rprec precision@5 precision@20 recall@5 hit@1 hit@5", {}),
    )
    for metric in metrics.split()
]
WEIGHTS = "lightgbm", "xgboost", "catboost"


@pytest.mark.parametrize(("library", "native", "metric", "kind"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_the_convention_gives_the_library_s_value(library, native, metric, kind):
    for seed in range(3):
        scores, labels, group = data(seed, **kind)
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.2, 3, len(group)).astype(np.float32)
        some = weight * (rng.random(len(group)) < 0.7)
        some[3 : 4 + seed // 2] = 0  # with nothing relevant in it
        for given in ((), (weight,), (some,))[: 3 if library in WEIGHTS else 1]:
            ours = evaluate(metric, scores, labels, group, *given, convention=library)
            assert ours == pytest.approx(native(metric, scores, labels, group, *given), abs=2e-6)
            if given:
                values = evaluate(metric, scores, labels, group, *given, convention=library, per_query=True)
                assert np.isfinite(values).all()
                found = compare_scores(metric, scores, -scores, labels, group, *given, convention=library)
                assert found.a == ours


def test_every_convention_of_every_metric_is_compared():
    compared = {(c[0], c[2].partition("@")[0]) for c in CASES}
    stated = {(library, name) for name in registry.metric_names() for library in Metric.named[name].conventions}
    assert compared == stated


def test_a_query_of_weight_0_with_nothing_relevant_counts_in_ndcg_as_in_the_libraries():
    """Its 1 is added without its weight."""
    scores, labels, weight = [1, 2, 1, 2, 1, 2], [1, 0, 0, 0, 0, 0], np.array([1, 0, 3])
    for library, value in (("xgboost", xgboost_value), ("lightgbm", lightgbm_value)):
        expected = value("ndcg@2", np.array(scores), np.array(labels), np.array([2, 2, 2]), weight)
        assert expected == pytest.approx(0.6577324)
        assert evaluate("ndcg@2", scores, labels, [2, 2, 2], weight, convention=library) == pytest.approx(expected)


TRANSLATED = {
    "NDCG:top=10;type=Exp": "ndcg(gain_type=exp)@10",
    "NDCG:type=Base": "ndcg(gain_type=linear)",
    "NDCG:top=10": "ndcg@10",
    "NDCG:denominator=Position": "ndcg(discount_type=reciprocal)",
    "DCG:type=Exp": "dcg(gain_type=exp)",
    "MAP:top=10;border=1.5": "map(threshold=1.5)@10",
    "MRR:border=0": "mrr(threshold=0)",
}


def test_options_of_the_libraries_metrics():
    scores, labels, group = data(0)
    for theirs, ours in TRANSLATED.items():
        expected = catboost_value(theirs, scores, labels, group)
        assert evaluate(ours, scores, labels, group, convention="catboost") == pytest.approx(expected)
    if xgboost.__version__ >= "3":  # before, its metric does not read the parameter
        expected, linear = (
            xgboost_value("ndcg@5", scores, labels, group, ndcg_exp_gain=False),
            "ndcg(gain_type=linear)@5",
        )
        assert evaluate(linear, scores, labels, group, convention="xgboost") == pytest.approx(expected)
    gains = (0, 1, 3, 10, 11)
    expected = lightgbm_value("ndcg@5", scores, labels, group, label_gain=gains)
    ours = NDCG(5, gain_type=gains)
    assert evaluate(ours, scores, labels, group, convention="lightgbm") == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:a data set with 3 queries. every order")  # of so little data
def test_the_callables_take_a_convention():
    xgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "catboost"))
    labels, group = np.array([0, 2, 1, 0, 0, 0, 0, 1, 0, 3.0]), np.array([3, 3, 4])
    scores, qid = np.array([1, 1, 0, 2, 2, 1, 0, 0, 1, 1.0]), np.repeat([0, 1, 2], group)
    expected = evaluate(["map@3", "ndcg@3"], scores, labels, group, convention="lightgbm")
    assert expected != evaluate(["map@3", "ndcg@3"], scores, labels, group)
    told = adapters.lightgbm_metric(*expected, convention="lightgbm")(labels, scores, None, group)
    assert {name: value for name, value, _ in told} == expected
    data = xgb.DMatrix(np.zeros((10, 1)), labels, qid=qid)
    assert dict(adapters.xgboost_metric(*expected, convention="lightgbm")(scores, data)) == expected
    pool = catboost.Pool(np.arange(20.0).reshape(10, 2), labels, group_id=qid)
    made = adapters.catboost_metric("ndcg@3", pool, convention="lightgbm")
    assert made.metric == get_metric("ndcg@3", "lightgbm")


def test_options_go_before_a_convention():
    chosen = NDCG(k=3, gain_type="linear", empty=0.5).with_convention("lightgbm")
    assert chosen == NDCG(k=3, gain_type="linear", empty=0.5, ties="input", query_weights="relevant")
    for name in registry.metric_names():
        made = Metric.named[name]
        least = {"k": 3} if made.cutoff == "required" else {}
        for convention, options in made.conventions.items():
            for option in options.keys() - {"k"}:
                default = getattr(made(**least), option)
                written = get_metric(f"{name}({option}={default}){'@3' if least else ''}", convention)
                assert getattr(written, option) == default
                assert getattr(get_metric(made(**least), convention), option) == options[option]
                given = made(**least, **{option: default})
                assert given == made(**least)
                assert hash(given) == hash(made(**least))
                for same in copies(given):
                    assert getattr(get_metric(same, convention), option) == default
                    assert get_metric(str(same), convention) == written
                for same in copies(made(**least)):
                    assert getattr(get_metric(same, convention), option) == options[option]
                    assert get_metric(str(get_metric(same, convention)), convention) == get_metric(same, convention)
                both = [dataclasses.replace(made(**least), **{option: default}), get_metric(str(given))]
                assert [getattr(get_metric(each, convention), option) for each in both] == [default] * 2


def copies(metric):
    return [
        metric, copy.copy(metric), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric._with(goal=None),
        dataclasses.replace(metric, goal=None),
    ]  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)  # slots are pickled in another way
class OfMine(NDCG):
    """With an option of its own, and another default."""

    gain_type: str = "linear"
    shown: int = 3

    name: ClassVar[str] = "ofmine"
    conventions: ClassVar[dict] = {"xgboost": {**NDCG.conventions["xgboost"], "shown": 7}}


def test_options_of_one_s_own_class_go_before_a_convention():
    for given, kept in (
        (OfMine(), {}),
        (OfMine(3), {"k": 3}),
        (OfMine(None), {"k": None}),
        (OfMine(shown=3, gain_type="linear"), {"shown": 3, "gain_type": "linear"}),
        (dataclasses.replace(OfMine(shown=4), shown=3, empty=0.0), {"shown": 3, "empty": 0.0}),
    ):
        for same in copies(given):
            found = same.with_convention("xgboost")
            assert found == dataclasses.replace(OfMine(), **{**OfMine.conventions["xgboost"], **kept})
            assert found.with_convention("xgboost") == found


def test_a_convention_takes_the_place_of_another():
    assert NDCG(3).with_convention("xgboost").with_convention("catboost") == NDCG(3).with_convention("catboost")


PAGE = Path(__file__).parents[1] / "docs" / "recommend.md"


@pytest.mark.skipif(not PAGE.exists(), reason="pages are in a clone only")
def test_each_divisor_of_the_page_of_recommenders_has_its_value(rng):
    """By the formulas of the libraries' sources, for users with at least one relevant item and for all."""
    group, k = np.full(40, 6), 3
    labels, scores = (rng.random(240) < 0.4).astype(float), rng.permutation(240).astype(float)
    found = [y[np.argsort(-s)] for y, s in zip(np.split(labels, 40), np.split(scores, 40), strict=True)]
    discount = 1 / np.log2(np.arange(2, k + 2))
    hits, relevant = (np.array([y[:n].sum() for y in found]) for n in (k, None))
    precisions = np.array([(y.cumsum() / np.arange(1, 7) * y)[:k].sum() for y in found])
    dcg = np.array([discount @ y[:k] for y in found])
    reachable, some = np.minimum(relevant, k), relevant > 0
    assert 0 < some.sum() < 40
    ideal = np.array([discount[: int(r)].sum() for r in reachable])
    with np.errstate(invalid="ignore"):
        values = {
            "recall@3": hits / relevant, "ndcg(discount_type=(1,1,1))@3": hits / reachable,
            "map(normalizer=relevant)@3": precisions / relevant, "map@3": precisions / reachable,
            "ndcg@3": dcg / ideal, "dcg@3": dcg / 2.131 * discount.sum(),
        }  # fmt: skip
    for text, by_user in values.items():
        assert f"`{text}`" in PAGE.read_text()
        skip = text.replace("@", "(empty=skip)@") if "(" not in text else text.replace("(", "(empty=skip,", 1)
        for asked, kept in ((text, np.nan_to_num(by_user)), (skip, by_user[some])):
            assert evaluate(asked, scores, labels, group) == pytest.approx(kept.mean(), rel=1e-3)
    pooled = evaluate("ndcg(discount_type=(1,1,1))@3", scores, labels, group, weight=reachable)
    assert pooled == pytest.approx(hits.sum() / reachable.sum())
