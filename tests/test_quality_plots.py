"""The pictures of a study show its results without clipping, and gaps are right."""

import numpy as np
import pytest
from matplotlib.image import imread
from scipy import stats

from benchmarks import lead, report
from benchmarks import summary as pooled
from benchmarks.figures import curves, dots, draw
from benchmarks.summary import summary

LIBRARIES = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "YetiRank:mode=NDCG;top=10"}
OURS = ["yetirank", "yetiloss:{metric}", "yetiloss:{metric};neighbors=1", "yetiloss:{metric};neighbors=3", "plrank",
        "plrank:hessian=ones", "queryrmse", "listnet"]  # fmt: skip


def results(sets=("one", "generated 5"), folds=2, ours=OURS, queries=12):
    rng = np.random.default_rng(0)
    found = []
    for data in sets:
        for fold in range(folds):
            for library, label in [("", "constant"), *((x, o) for x, n in LIBRARIES.items() for o in [n, *ours])]:
                r = {"fold": [data, f"Fold{fold}", 0], "library": library, "label": label, "objective": label,
                     "metrics": ["map", "err"], "seconds": 1.0, "budget": {"learning_rate": 0.1}, "test": {},
                     "train": {}, "vali": {}, "trees": {}, "curves": {}}  # fmt: skip
                for metric in ("map", "err"):
                    r["test"][metric] = list(rng.random(queries) * (0.5 if library == "" else 1.0))
                    if library:
                        curve = list(0.5 + 0.01 * np.arange(rng.integers(5, 9)) + 0.01 * rng.random())
                        r["curves"][metric], r["trees"][metric] = curve, len(curve)
                        r["vali"][metric], r["train"][metric] = curve[-1], 0.9 + 0.1 * rng.random()
                found.append(r)
    return found


@pytest.mark.parametrize(("sets", "ours"), [(("one", "generated 5"), OURS[:3]), (("one",), OURS[:1])])
def test_every_picture_of_a_study_is_drawn_and_nothing_is_cut_off(sets, ours, tmp_path):
    frame = pooled.chosen(results(sets, ours=ours))
    values = pooled.by_query(frame)
    table = summary(values)
    written = draw(frame, table, lead.lead(values), report.verdict(values), tmp_path)
    expected = {f"dots-{m}.png" for m in ("map", "err")}
    expected |= {f"curves-{data}-{m}.png" for m in ("map", "err") for data in ("one", "generated_5")[: len(sets)]}
    expected.add("verdict.png")
    assert {path.name for path in written} == expected == {path.name for path in tmp_path.iterdir()}
    for path in written:
        picture = imread(path)[..., :3]
        assert picture.std() > 0.03
        # clipped content touches the edge
        assert picture[[0, -1]].min() == picture[:, [0, -1]].min() == 1.0


def test_dots_have_the_place_and_the_interval_of_the_summary(tmp_path, monkeypatch):
    frame = pooled.chosen(results(("one",), ours=OURS[:2]))
    table = summary(pooled.by_query(frame))
    figures = []
    monkeypatch.setattr(dots.style, "save", lambda figure, *names: figures.append(figure))
    dots.metric_dots(table, "map", tmp_path)
    [ax] = figures[0].axes
    part = table[table["metric"] == "map"].set_index(["library", "objective"])
    constant = part.loc[("", "constant"), "mean"]
    shown = {}
    for dot, _, [interval] in ax.containers:
        [x], (low, high) = dot.get_xdata(), interval.get_segments()[0][:, 0]
        shown[round(x, 9)] = round(high - x, 9), round(x - low, 9), dot.get_markerfacecolor() == "white"
    expected = {round(mean, 9): (round(1.96 * se, 9), round(1.96 * se, 9), label in LIBRARIES.values())
                for (library, label), (mean, se) in part[["mean", "se"]].iterrows() if library}  # fmt: skip
    assert shown == expected
    assert ax.lines[-1].get_xdata() == pytest.approx([constant, constant])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["yetirank", "yetiloss:map", *LIBRARIES.values()]


def test_mean_curves_hold_the_value_of_the_stop():
    found = curves.mean_curve([[0.1, 0.5, 0.4, 0.3], [0.2, 0.3]], [2, 2])
    assert found == pytest.approx([0.15, 0.4, 0.35, 0.3])
    found = curves.mean_curve([[0.1, 0.5, 0.4], [0.1, 0.1, 0.1, 0.1]], [2, 1])
    assert found == pytest.approx([0.1, 0.3, 0.25, 0.3])


@pytest.mark.parametrize("folds", [1, 2])
def test_curves_are_strong_up_to_their_dot_and_pale_beyond(folds):
    frame = pooled.chosen(results(("one",), folds, OURS[:1]))
    figure = curves.drawn(frame, "one", "map")
    for ax, library in zip(figure.axes, LIBRARIES, strict=True):
        for label, (whole, strong, dot) in zip(
            [LIBRARIES[library], OURS[0]], np.reshape(ax.lines, (-1, 3)), strict=True
        ):
            rows = frame[(frame["metric"] == "map") & (frame["library"] == library) & (frame["label"] == label)]
            assert dot.get_xdata() == [rows["trees"].mean()]
            assert len(whole.get_xdata()) == max(map(len, rows["curve"]))
            assert strong.get_xdata()[-1] == round(rows["trees"].mean())
            assert whole.get_alpha() < 0.5
            assert strong.get_alpha() is None


def test_gaps_are_train_less_test(tmp_path):
    found = results(("one",), ours=["yetirank"])
    table = report.gap_values(pooled.chosen(found))
    line = table[(table["library"] == "lightgbm") & (table["label"] == "yetirank") & (table["metric"] == "map")].iloc[0]
    mine = [r for r in found if r["library"] == "lightgbm" and r["label"] == "yetirank"]
    each = [r["train"]["map"] - np.mean(r["test"]["map"]) for r in mine]
    assert line["train"] == pytest.approx(np.mean([r["train"]["map"] for r in mine]))
    assert line["value"] == pytest.approx(np.mean(each))
    assert line["se"] == pytest.approx(stats.sem(each))
    text = report.gap_table(table)
    assert f"| lightgbm | yetirank | {line['train']:.4f} ({line['value']:.4f}) |" in text
    assert "| xgboost | rank:ndcg (native) |" in text
