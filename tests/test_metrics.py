"""Every metric: its methods agree with its definition, and each convention gives the value of its library."""

import copy
import dataclasses
import math
import pickle
import sys
from typing import ClassVar

import catalog
import numpy as np
import pytest
import xgboost
from scipy import stats
from sklearn.metrics import roc_auc_score

from ltr_objectives import (
    NDCG,
    LambdaMART,
    LTRWarning,
    Metric,
    Queries,
    StochasticRank,
    adapters,
    check_metric,
    compare_scores,
    evaluate,
    get_metric,
    get_objective,
    registry,
)
from ltr_objectives.testing import random_labels

# the definition


@pytest.mark.parametrize("name", catalog.METRICS)
def test_value_ties_swaps_and_moves_are_those_of_the_definition(name):
    for options in ({}, *catalog.MORE.get(name, ())):
        check_metric(dataclasses.replace(catalog.METRICS[name][0], **options))  # with all cutoffs and ties


def test_shares_of_documents_are_divided_once():
    """As NumPy divides: 3 of 5 are 0.6, and not 3 times 0.2, which is 0.6000000000000001."""
    for n in (*range(1, 60), 98, 103):
        for found in range(1, n + 1):
            assert evaluate(f"precision@{n}", -np.arange(n), np.arange(n) < found, [n]) == found / n
            assert evaluate(f"recall@{found}", -np.arange(n), np.ones(n), [n]) == found / n


def test_neither_threads_nor_the_order_of_rows_change_values(any_metric, rng):
    group = rng.integers(1, 40, 200)
    labels = random_labels(any_metric.label_limit, rng, group.sum())
    scores = np.round(rng.normal(size=group.sum()), 1)
    one = any_metric.per_query(scores, labels, group, n_threads=1)
    for threads in (2, 4):
        assert np.array_equal(one, any_metric.per_query(scores, labels, group, n_threads=threads), equal_nan=True)
    if any_metric.ties != "input":
        rows = np.concatenate([a + rng.permutation(n) for a, n in zip(np.cumsum(group) - group, group, strict=True)])
        other = any_metric.per_query(scores[rows], labels[rows], group)
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12)


def test_discounts_are_written_as_text_only_for_an_error(monkeypatch):
    """The text of a long list of discounts takes longer than its metric."""
    monkeypatch.setattr(sys.modules[Metric.__module__], "shown", lambda value: pytest.fail("no error needs it"))
    assert evaluate("ndcg", [0.2, 0.1], [1, 0], [2]) == 1.0


def test_long_lists_have_values_in_the_range_of_the_metric(any_metric, rng):
    labels = random_labels(any_metric.label_limit, rng, 20_000)
    for scores in (rng.normal(size=20_000), np.zeros(20_000)):
        value = any_metric.per_query(scores, labels, [20_000])[0]
        assert np.isfinite(value)
        if any_metric.maximum:
            assert catalog.LEAST.get(any_metric.name, 0.0) - 1e-9 <= value <= any_metric.maximum + 1e-9


def test_empty_queries_have_the_value_asked_for(any_metric):
    for empty in (0.0, 1.0, 0.25):
        metric = dataclasses.replace(any_metric, empty=empty)
        assert metric.per_query([1.0, 2.0], [0, 0], [2])[0] == empty
    skipping = dataclasses.replace(any_metric, empty="skip")
    best = min(any_metric.label_limit or 4, 31)
    scores, labels = [3.0, 2.0, 1.0, 0.0, 1.0], [0, 0, 0, best, 0]
    kept = skipping.per_query(scores, labels, [3, 2])
    assert math.isnan(kept[0])
    assert evaluate(skipping, scores, labels, [3, 2]) == kept[1]


def test_the_example_of_jarvelin_and_kekalainen():
    """Section 2 of "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with logarithms of base 2."""
    labels = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0, 1, 1, 1]  # the ideal vector has three documents of label 1 more
    dcg = [3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
    ndcg = [1, 0.83, 0.87, 0.78, 0.71, 0.69, 0.73, 0.77, 0.83, 0.81]
    for name, expected in (("dcg", dcg), ("ndcg", ndcg)):
        texts = [f"{name}(gain_type=linear,discount_type=log2-rank)@{k}" for k in range(1, 11)]
        found = evaluate(texts, -np.arange(13.0), labels, [13])
        assert [round(value, 2) for value in found.values()] == expected


def test_the_ideal_order_is_that_of_the_gains_even_if_they_fall():
    falling = type("Falling", (NDCG,), {"gain": lambda self, labels: 3.0 - labels})
    assert falling().per_query([2.0, 1.0, 0.0], [0, 1, 3], [3]) == [1.0]


def test_results_of_thousands_of_metrics_are_not_all_kept(rng):
    queries, scores = Queries(rng.integers(0, 2, 5000), [50] * 100), rng.normal(size=5000)
    kept = []
    for i in range(600):
        NDCG(k=1 + i % 20).layers(queries)  # used often, so kept
        get_metric(f"precision(threshold={i / 1000})@3").layers(queries)
        if i in (200, 599):
            kept.append(len(pickle.dumps(list(vars(queries).values()))))
    assert kept[1] < 1.01 * kept[0]
    terms = NDCG(k=7).terms(queries)
    assert NDCG(k=7).terms(queries) is terms
    assert NDCG(k=7).mean(queries, scores) == evaluate("ndcg@7", scores, queries.labels, [50] * 100)


def test_labels_of_which_every_one_is_relevant_are_warned_of():
    scores, stars, clicks = np.arange(6.0), [1, 2, 3, 3, 2, 1], [0, 1, 0, 1, 0, 1]
    for name, labels in (("map", stars), ("precision@1", stars), ("mrr[stars]", {None: clicks, "stars": stars})):
        with pytest.warns(LTRWarning, match="threshold=2.5"):
            evaluate(name, scores, labels, [3, 3])
    evaluate("map(threshold=2.5)", scores, stars, [3, 3])


@pytest.mark.parametrize("reads", [NDCG(), get_metric("dcg@2"), *map(get_objective, ("yetiloss", "plrank", "xendcg"))])
def test_exponential_gains_of_amounts_are_warned_of_once(reads):
    def read(queries):
        (reads.values if isinstance(reads, Metric) else reads.compute)(queries, [0.0, 1.0])

    money = Queries([400.0, 12.5], [2])
    with pytest.warns(LTRWarning, match=r"labels are up to 400, .*gain_type=linear"):
        read(money)
    read(money)
    read(Queries([31.0, 0.0], [2]))
    evaluate(type("Own", (NDCG,), {"gain": lambda self, labels: np.log1p(labels)})(), [0.0, 1.0], [400.0, 12.5], [2])
    evaluate("ndcg(gain_type=linear)", [0.0, 1.0], [400.0, 12.5], [2])


@pytest.mark.parametrize("weighted", [False, True])
def test_gauc_is_the_mean_of_auc_over_impressions_of_users_with_both_classes(weighted, rng):
    scores, labels, group = data(0, binary=True)
    weight = rng.uniform(0.2, 3, len(labels)) if weighted else np.ones(len(labels))
    user = np.repeat(np.arange(len(group)), group)
    rows = [user == u for u in range(len(group)) if len(set(labels[user == u])) == 2]
    values = [roc_auc_score(labels[of], scores[of]) for of in rows]
    expected = np.average(values, weights=[weight[of].sum() for of in rows])
    assert evaluate("gauc", scores, labels, group, weight if weighted else None) == pytest.approx(expected)


# rank correlations


@pytest.mark.parametrize("make", [LambdaMART, StochasticRank])
def test_only_the_order_of_the_labels_counts_in_a_rank_correlation(make, rng):
    y, s, sizes = rng.integers(0, 5, 64), rng.normal(size=64), [8] * 8
    value, expected = evaluate("spearman", s, y, sizes), make("spearman").gradient_hessian(s, y, sizes)
    assert expected[0].any()
    of_each_query = y + 10 * np.repeat(range(8), 8)  # only the labels of a query are compared
    for other in (y - 2, np.exp(y), 0.1 * y - 1e6, of_each_query):
        assert evaluate("spearman", s, other, sizes) == value
        np.testing.assert_array_equal(make("spearman").gradient_hessian(s, other, sizes), expected)


def test_spearman_of_untied_scores_is_that_of_scipy(rng):
    for n in (2, 5, 40):
        s, y = rng.permutation(n), np.append(rng.integers(0, 5, n - 1), 5)
        assert evaluate("spearman", s, y, [n]) == pytest.approx(stats.spearmanr(s, y).statistic, abs=1e-12)


# the values of the libraries


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
