"""Each convention preset gives the value that its library computes, ties and empty queries included."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ltr_objectives import Metric, Queries, adapters, evaluate, get_metric, registry
from ltr_objectives.adapters._xgboost import _as_xgboost
from ltr_objectives.errors import LTRError
from ltr_objectives.metrics.average_precision import MAP
from ltr_objectives.metrics.linear import NDCG


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


def lightgbm_value(metric, scores, labels, group, weight=None):
    lgb = pytest.importorskip("lightgbm")
    name, _, k = metric.partition("@")
    X = np.zeros((len(labels), 1))
    by_row = None if weight is None else np.repeat(weight, group)
    train = lgb.Dataset(X, labels, group=group, init_score=scores, weight=by_row)
    out = {}
    params = {
        "objective": "lambdarank", "metric": name, "eval_at": [int(k or 1000)], "verbose": -1, "num_threads": 1,
        "learning_rate": 1e-12,
    }  # fmt: skip
    lgb.train(params, train, 1, valid_sets=[train], callbacks=[lgb.record_evaluation(out)])
    return next(iter(out["training"].values()))[0]


def xgboost_value(metric, scores, labels, group, weight=None):
    xgb = pytest.importorskip("xgboost")
    d = xgb.DMatrix(np.zeros((len(labels), 1)), labels, base_margin=scores)
    d.set_group(group)
    if weight is not None:
        d.set_weight(weight)
    name = metric.replace("precision", "pre")
    out = {}
    params = {"objective": "rank:pairwise", "eval_metric": name, "learning_rate": 0, "nthread": 1}
    xgb.train(params, d, 1, evals=[(d, "d")], evals_result=out, verbose_eval=False)
    return out["d"][name][0]


def catboost_value(metric, scores, labels, group, weight=None):
    utils = pytest.importorskip("catboost.utils")
    name, _, k = metric.partition("@")
    theirs = {"ndcg": "NDCG", "dcg": "DCG", "map": "MAP", "mrr": "MRR", "err": "ERR", "pfound": "PFound",
              "precision": "PrecisionAt", "recall": "RecallAt"}[name]  # fmt: skip
    qid = np.repeat(np.arange(len(group)), group)
    asked = f"{theirs}:top={k}" if k else theirs
    if weight is None:
        return utils.eval_metric(labels, scores, asked, group_id=qid)[0]
    asked += ":use_weights=true" if "top" not in asked else ";use_weights=true"
    by_row = np.repeat(weight, group)
    return utils.eval_metric(labels, scores, asked, group_id=qid, group_weight=by_row)[0]


def sklearn_value(metric, scores, labels, group):
    sk = pytest.importorskip("sklearn.metrics")
    name, _, k = metric.partition("@")
    values = []
    for y, s in zip(np.split(labels, np.cumsum(group)[:-1]), np.split(scores, np.cumsum(group)[:-1]), strict=True):
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
              "hit": "success"}[name]  # fmt: skip
    asked = f"{theirs}_cut.{k}" if k and name in ("ndcg", "map") else f"{theirs}.{k}" if k else theirs
    qrels, run = {}, {}
    row = 0
    for q, n in enumerate(group):
        # it orders equal scores by descending name, so names are such that this is the order of the rows
        names = [f"d{n - i:04d}" for i in range(n)]
        qrels[str(q)] = {d: int(labels[row + i]) for i, d in enumerate(names)}
        run[str(q)] = {d: float(scores[row + i]) for i, d in enumerate(names)}
        row += n
    results = pytrec_eval.RelevanceEvaluator(qrels, {asked}).evaluate(run)
    return np.mean([results[str(q)][asked.replace(".", "_")] for q in range(len(group))])


def scipy_value(metric, scores, labels, group):
    of = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[metric]
    ends = np.cumsum(group)[:-1]
    lists = zip(np.split(scores, ends), np.split(labels, ends), strict=True)
    values = [of(s, y).statistic for s, y in lists if len(set(s)) > 1 and len(set(y)) > 1]  # else NaN and a warning
    return np.mean(values)


CASES = [
    *itertools.product(["lightgbm"], [lightgbm_value], ["ndcg@3", "ndcg@10", "ndcg", "map@3", "map@10", "map"], [{}]),
    *itertools.product(["xgboost"], [xgboost_value], ["ndcg", "ndcg@3", "ndcg@100"], [{}]),
    *itertools.product(
        ["xgboost"], [xgboost_value], ["map", "map@3", "map@100", "precision@3", "precision@40"], [{"binary": True}]
    ),
    *itertools.product(
        ["catboost"], [catboost_value],
        ["ndcg", "ndcg@3", "dcg", "dcg@5", "map", "map@3", "mrr", "mrr@2", "precision@3",
         "precision@20", "recall@3", "recall@1"],
        [{}],
    ),
    *itertools.product(["catboost"], [catboost_value], ["err", "err@3", "pfound", "pfound@3"], [{"probability": True}]),
    *itertools.product(["sklearn"], [sklearn_value], ["ndcg", "ndcg@3", "dcg", "dcg@3"], [{}]),
    *itertools.product(["sklearn"], [sklearn_value], ["auc"], [{"binary": True}]),
    *itertools.product(
        ["trec_eval"], [trec_eval_value],
        ["ndcg", "ndcg@5", "map", "map@5", "mrr", "precision@5", "precision@20", "recall@5", "hit@1",
         "hit@5"], [{}],
    ),
    *itertools.product(["scipy"], [scipy_value], ["spearman", "kendall"], [{}]),
]  # fmt: skip


@pytest.mark.parametrize(("library", "native", "metric", "kind"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_the_preset_gives_the_library_s_value(library, native, metric, kind):
    for seed in range(3):
        scores, labels, group = data(seed, **kind)
        ours = evaluate(metric, scores, labels, group, convention=library)
        assert ours == pytest.approx(native(metric, scores, labels, group), abs=2e-6)


@pytest.mark.parametrize(
    ("native", "metric", "kind"),
    [(c[1], c[2], c[3]) for c in CASES if c[0] in ("lightgbm", "xgboost", "catboost")],
    ids=[f"{c[0]}-{c[2]}" for c in CASES if c[0] in ("lightgbm", "xgboost", "catboost")],
)
def test_the_preset_weighs_queries_as_the_library(native, metric, kind):
    library = native.__name__.removesuffix("_value")
    scores, labels, group = data(5, **kind)
    weight = np.random.default_rng(5).uniform(0.2, 3, len(group)).astype(np.float32)
    ours = evaluate(metric, scores, labels, group, weight, convention=library)
    assert ours == pytest.approx(native(metric, scores, labels, group, weight), abs=2e-6)


def test_options_of_an_object_stay_under_a_convention():
    chosen = NDCG(k=3, gain_type="linear", empty=0.5).with_convention("lightgbm")
    assert chosen == NDCG(k=3, gain_type="linear", empty=0.5, ties="input", query_weights="relevant")


def test_every_convention_of_every_metric_is_compared():
    compared = {(c[0], c[2].partition("@")[0]) for c in CASES}
    stated = {(library, name) for name in registry.metrics() for library in Metric.named[name].conventions}
    assert compared == stated


def test_conventions_differ_where_it_is_said_that_they_do():
    scores, labels, group = [1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3], [4]
    assert evaluate(NDCG(), scores, labels, group, convention="lightgbm") == pytest.approx(0.5478, abs=1e-4)
    assert evaluate(NDCG(), scores, labels[::-1], group, convention="lightgbm") == 1.0
    assert evaluate(NDCG(gain_type="exp"), scores, labels, group) == pytest.approx(0.75, abs=5e-3)
    assert evaluate(MAP(), [2.0, 1.0], [0, 0], [2], convention="lightgbm") == 1.0
    assert evaluate(MAP(), [2.0, 1.0], [0, 0], [2], convention="trec_eval") == 0.0


CONVENTIONS = sorted({convention for name in registry.metrics() for convention in Metric.named[name].conventions})


@pytest.mark.filterwarnings("ignore:a data set with 3 queries. every order")  # of so little data
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_entry_takes_a_convention(convention):
    """The adapters' metrics give the value of ``evaluate`` under the convention."""
    xgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "catboost"))
    labels, group = np.array([0, 2, 1, 0, 0, 0, 0, 1, 0, 3.0]), np.array([3, 3, 4])
    scores, qid = np.array([1, 1, 0, 2, 2, 1, 0, 0, 1, 1.0]), np.repeat([0, 1, 2], group)
    names = [n for n in registry.metrics() if convention in Metric.named[n].conventions]
    metrics = [n if Metric.named[n].cutoff == "none" else f"{n}@3" for n in names]
    metrics = [m for m in metrics if not m.startswith(("err", "pfound"))]
    expected = evaluate(metrics, scores, labels, group, convention=convention)
    assert expected == {m: get_metric(m, convention).mean(Queries(labels, group), scores) for m in metrics}
    assert expected != evaluate(metrics, scores, labels, group)
    told = adapters.lightgbm_metric(*metrics, convention=convention)(labels, scores, None, group)
    assert {name: value for name, value, _ in told} == expected
    data = xgb.DMatrix(np.zeros((10, 1)), labels, qid=qid)
    told = adapters.xgboost_metric(*metrics, convention=convention)(scores, data)
    assert told == [_as_xgboost(get_metric(m), value) for m, value in expected.items()]
    pool = catboost.Pool(np.arange(20.0).reshape(10, 2), labels, group_id=qid)
    for metric in metrics:
        made = adapters.catboost_metric(metric, pool, convention=convention)
        assert made.metric == get_metric(metric, convention) == get_metric(metric).with_convention(convention)


def test_options_in_text_go_before_a_convention():
    for name in registry.metrics():
        made = Metric.named[name]
        k = 3 if made.cutoff == "required" else None
        for convention, options in made.conventions.items():
            for option in options.keys() - {"k"}:
                default = getattr(made(k=k), option)
                written = get_metric(f"{name}({option}={default}){'@3' if k else ''}", convention)
                assert getattr(written, option) == default
                assert getattr(get_metric(made(k=k), convention), option) == options[option]


def test_entries_name_an_unknown_convention():
    pool = pytest.importorskip("catboost").Pool([[0], [1]], [0, 1], group_id=[1, 1])
    for entry in (get_metric, adapters.xgboost_metric, adapters.lightgbm_metric):
        with pytest.raises(LTRError, match=r"ndcg has no convention 'ligthgbm'; conventions of ndcg: cat"):
            entry("ndcg", convention="ligthgbm")
    with pytest.raises(LTRError, match="ndcg has no convention 'ligthgbm'"):
        adapters.catboost_metric("ndcg", pool, convention="ligthgbm")
    with pytest.raises(LTRError, match="mrr has no convention 'lightgbm'; conventions of mrr"):
        adapters.xgboost_metric("ndcg", "mrr", convention="lightgbm")


def test_several_metrics_at_once():
    given = [2.0, 1.0, 0.0, 1.0], [0, 1, 2, 0], [2, 2]
    found = evaluate(["ndcg@10", MAP(), NDCG(k=1)], *given, weight=[1, 3], n_threads=1)
    assert found == {m: evaluate(m, *given, weight=[1, 3]) for m in ("ndcg@10", "map", "ndcg@1")}
    arrays = evaluate(("map", "mrr"), *given, per_query=True)
    assert {m: list(v) for m, v in arrays.items()} == {m: list(evaluate(m, *given, per_query=True)) for m in arrays}
    assert evaluate(["map"], *given) == {"map": evaluate("map", *given)}
    for wrong, message in (([], "at least one metric"), (["map", MAP()], "two metrics are both called map")):
        with pytest.raises(LTRError, match=message):
            evaluate(wrong, *given)
