"""Trade-offs: each line is a training by hand, compared with the first of them."""

import numpy as np
import pandas as pd
import pytest
from commands import run_json
from own_classes import Right
from rankers import LIBRARIES, ranker_class
from trainings import release
from two_goals import BOTH, EVAL, LABELS, MONEY, NDCG, TRAIN, VALI, revenue

from ltr_objectives import LTRError, LTRWarning, compare_scores, evaluate
from ltr_objectives.adapters import ComparisonDisplay, TradeoffDisplay, tradeoff

everywhere = pytest.mark.parametrize("library", LIBRARIES)
DATA = {"X": TRAIN.X, "y": TRAIN.y, "qid": TRAIN.qid, **LABELS, **EVAL}


def ranker(library, metrics=(NDCG, MONEY), rounds=20, **params):
    return ranker_class(library)(eval_metric=metrics, **{**LIBRARIES[library][1], "n_estimators": rounds, **params})


def compared(found, base, metric, labels=BOTH, weight=None):
    """Return the change of a line and its interval, by the public comparison."""
    pair = (each.predict(VALI.X) for each in (found, base))
    c = compare_scores(metric, *pair, labels, qid=VALI.qid, weight=weight)
    return c.a, *(np.array([c.difference, c.low, c.high]) / c.b)


def check_lines(found, metrics, weight=None):
    rankers = list(found.rankers.values())
    assert [line.training for line in found.lines] == [*found.rankers]
    for line, each in zip(found.lines, rankers, strict=True):
        expected = (
            *compared(each, rankers[0], metrics[0], weight=weight),
            *compared(each, rankers[0], metrics[1], weight=weight),
        )
        np.testing.assert_allclose(line[1:9], expected, rtol=1e-6, atol=1e-9)
        assert line.rounds == each.best_iteration_
        others = [(o.first - line.first, o.second - line.second) for o in found.lines]
        better = any(min(more) >= 0 < max(more) for more in others)
        assert line.on_front == (not better)


@everywhere
def test_each_line_is_a_training_by_hand_compared_with_the_first(library):
    found = tradeoff(ranker(library), **DATA, lose=[0.02], weights=[0.3])
    assert [*found.rankers] == [f"{NDCG} alone", "may lose 2%", "weight 0.3"]
    check_lines(found, (NDCG, MONEY))
    alone, bounded, weighted = (each.predict(VALI.X) for each in found.rankers.values())
    best, money = evaluate([NDCG, MONEY], alone, BOTH, qid=VALI.qid).values()
    most = evaluate(MONEY, revenue(VALI), BOTH, qid=VALI.qid)  # which is 1 in a sum
    patient = {"early_stopping_rounds": 100}
    by_hand = {
        "alone": ranker(library, NDCG).fit(
            **{k: v for k, v in DATA.items() if "labels" not in k}, **patient
        ),
        "bounded": ranker(library, MONEY, bounds={NDCG: 0.98 * best}).fit(**DATA),
        "weighted": ranker(
            library, f"{1 / best}*{NDCG} + {0.3 * most / money}*{MONEY}",
            objective=f"yetiloss:ndcg + 0.3*yetiloss:{MONEY.replace('[revenue]', '')}[revenue]",
        ).fit(**DATA, **patient),
    }  # fmt: skip
    for scores, each in zip((alone, bounded, weighted), by_hand.values(), strict=True):
        assert each.predict(VALI.X).tobytes() == scores.tobytes()
    widths = np.array([(line.first_high - line.first_low, line.second_high - line.second_low) for line in found.lines])
    assert found.resolution == pytest.approx(tuple(widths[1:].mean(axis=0) / 2))


@everywhere
def test_weights_of_rows_count_in_means_and_intervals(library):
    weight = np.repeat(np.random.default_rng(0).choice([0.2, 1.0, 4.0], len(VALI.group)), VALI.group)
    given = {"sample_weight": np.ones(len(TRAIN.y)), "eval_sample_weight": [weight]}
    found = tradeoff(ranker(library, rounds=8), **DATA, weights=[0.3], **given)
    assert len(found.lines) == 2  # and no bounds
    check_lines(found, (NDCG, MONEY), weight)


@pytest.mark.parametrize("metrics", [(NDCG, "map"), (f"{NDCG}+0.5*map", MONEY), (Right(k=5), NDCG)], ids=str)
def test_metrics_may_be_sums_and_own_classes_and_share_their_labels(metrics):
    goals = [] if MONEY in metrics else ["labels", "eval_labels"]
    given = {name: value for name, value in DATA.items() if name not in goals}
    found = tradeoff(ranker("lightgbm", [*metrics]), **given, lose=[0.05], weights=[1])
    assert found.metrics == tuple(map(str, metrics))
    for i, metric in enumerate(metrics):
        means = [evaluate(metric, each.predict(VALI.X), BOTH, qid=VALI.qid) for each in found.rankers.values()]
        np.testing.assert_allclose([line[1 + 4 * i] for line in found.lines], means)


def test_initial_scores_count_in_the_comparison():
    start = 3 * np.random.default_rng(0).normal(size=len(VALI.y))
    given = {"init_score": np.zeros(len(TRAIN.y)), "eval_init_score": [start]}
    found = tradeoff(ranker("lightgbm", rounds=5), **DATA, **given, lose=[0.05])
    alone = next(iter(found.rankers.values()))
    mean = evaluate(NDCG, alone.predict(VALI.X) + start, BOTH, qid=VALI.qid)
    assert found.lines[0].first == pytest.approx(mean)


@pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])
@pytest.mark.parametrize(
    ("words", "params", "given"),
    [
        ("objective=", {"objective": "ranknet"}, {}),
        ("bounds=", {"bounds": {NDCG: 0.7}}, {}),
        ("eval_metric", {"eval_metric": NDCG}, {}),
        ("eval_metric", {"eval_metric": [NDCG, MONEY, "map"]}, {}),
        ("eval_metric", {"eval_metric": None}, {}),
        ("two metrics", {"eval_metric": [NDCG, NDCG]}, {}),
        ("eval_set", {}, {"eval_set": None, "eval_qid": None, "eval_labels": None}),
        ("lose", {}, {"lose": [1]}),
        ("lose", {}, {"lose": 0.01}),
        ("lose", {}, {"lose": [-0.01]}),
        ("weights", {}, {"weights": [0]}),
        ("revenue", {}, {"labels": None}),
    ],
)
def test_what_has_no_trade_off_is_refused_before_a_training(library, words, params, given):
    with pytest.raises(LTRError, match=words):
        tradeoff(ranker(library).set_params(**params), **{**DATA, **given})


def test_shares_of_nothing_are_refused():
    without = {"labels": {"revenue": revenue(TRAIN)}, "eval_labels": [{"revenue": np.zeros(len(VALI.y))}]}
    with pytest.raises(LTRError, match="revenue"), pytest.warns(LTRWarning, match="revenue"):
        tradeoff(ranker("lightgbm", rounds=2), **{**DATA, **without})


def test_a_warning_of_each_training_is_shown_once():
    of_queries = {"X": TRAIN.qid[:, None], "eval_set": [(VALI.qid[:, None], VALI.y)]}
    with pytest.warns(LTRWarning, match="no column orders the rows") as given:
        tradeoff(ranker("lightgbm"), **{**DATA, **of_queries})
    assert len(given) == 1


def test_the_picture_has_a_point_for_each_line_and_the_front():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    found = tradeoff(ranker("lightgbm", rounds=5), **DATA, lose=[0.05], weights=[0.1])
    _, ax = pyplot.subplots()
    shown = TradeoffDisplay.from_tradeoff(found, ax)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert [text.get_text() for text in ax.texts] == [x.training for x in sorted(found.lines, key=lambda x: x.first)]
    points = 100 * np.array([(x.first_change, x.second_change) for x in found.lines if x.on_front])
    lines = [line.get_xydata() for line in ax.lines if line.get_linestyle() == "-"]
    assert any(sorted(map(tuple, line)) == sorted(map(tuple, points)) for line in lines)
    pyplot.close("all")


def test_the_picture_of_comparisons_has_each_difference_with_its_interval():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    scores = VALI.y + rng.normal(size=(2, len(VALI.y))) * [[1.0], [3.0]]
    found = {name: compare_scores(name, *scores, VALI.y, qid=VALI.qid) for name in ("map", NDCG)}
    shown = ComparisonDisplay.from_comparisons(found, ("new", "old"))
    assert [text.get_text() for text in shown.ax_.get_yticklabels()] == [*found]
    ends = [container[2][0].get_segments()[0][:, 0] for container in shown.ax_.containers]
    np.testing.assert_allclose(ends, [(c.low, c.high) for c in found.values()])
    text = shown.ax_.get_xlabel()
    assert text.index("old") < text.index("new")  # whose side is the right one
    pyplot.close("all")


# the command


def options(*more, metrics=f"{NDCG},{MONEY}"):
    shape = ["--trees", 20, "--learning-rate", 0.3, "--param", "num_leaves=7", "--threads", 1, "--patience", 100]
    return ["tradeoff", "--library", "lightgbm", "--train", "train.csv", "--vali", "vali.csv", *shape, "--metric",
            metrics, *more]  # fmt: skip


@pytest.fixture
def files(workplace):
    for name, data in {"train": TRAIN, "vali": VALI}.items():
        frame = pd.DataFrame(data.X.astype(float)).add_prefix("f").assign(label=data.y, qid=data.qid)
        frame.assign(revenue=revenue(data)).to_csv(f"{name}.csv", index=False, float_format="%.17g")
    return workplace


def test_the_command_prints_the_table_of_the_function(files):
    found = run_json(*options("--lose", "0.02", "--weights", 0.3))
    given = {**DATA, "X": pd.DataFrame(TRAIN.X.astype(float)).add_prefix("f")}
    given["eval_set"] = [(pd.DataFrame(VALI.X.astype(float)).add_prefix("f"), VALI.y)]
    params = {"n_jobs": 1, "num_leaves": 7, "learning_rate": 0.3}
    expected = tradeoff(ranker("lightgbm", **params), **given, lose=[0.02], weights=[0.3])
    assert (found["metrics"], found["queries"]) == ([*expected.metrics], len(VALI.group))
    for line, by_function in zip(found["lines"], expected.lines, strict=True):
        assert (line["training"], line["on_front"]) == (by_function.training, by_function.on_front)
        np.testing.assert_allclose(line["second_change"], by_function.second_change, atol=1e-6)
