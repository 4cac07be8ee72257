"""The pictures of a study show its results without clipping, and gaps are right."""

import numpy as np
import pytest
from matplotlib.image import imread
from scipy import stats

from benchmarks import lead, report
from benchmarks import summary as pooled
from benchmarks.figures import curves, dots, draw, style
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
    written = draw(frame, table, report.gap_values(frame), lead.lead(values), report.verdict(values), tmp_path)
    expected = {f"{kind}-{m}.png" for m in ("map", "err") for kind in ("dots", "gaps")}
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
    lines = [(x, o) for o in OURS[:2] for x in LIBRARIES] + list(LIBRARIES.items())
    assert len(ax.containers) == len(lines)
    for (dot, _, [interval]), key in zip(ax.containers, lines, strict=True):
        mean, half = part.loc[key, "mean"], 1.96 * part.loc[key, "se"]
        assert dot.get_xdata() == pytest.approx([mean])
        assert interval.get_segments()[0][:, 0] == pytest.approx([mean - half, mean + half])
        assert (dot.get_markerfacecolor() == "white") == (key[1] in LIBRARIES.values())
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
    title = figure._suptitle.get_text().replace("\n", " ")
    assert ("mean over folds" in title) == (folds > 1)
    for ax, library in zip(figure.axes, LIBRARIES, strict=False):
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


def test_a_file_name_fits_every_system(tmp_path):
    figure = style.blank(3, 2, "title " * 20)
    assert figure._suptitle.get_text().count("\n") >= 2
    path = style.save(figure, tmp_path, "dots", "generated 850,150,400", "yetiloss:map;noise=none", "ndcg@10")
    assert path.name == "dots-generated_850_150_400-yetiloss_map_noise_none-ndcg_10.png"
    assert isinstance(imread(path), np.ndarray)
    assert style.shown("x" * 60, "map").endswith("…")


@pytest.mark.parametrize("folds", [1, 2])
def test_gaps_promise_errors_only_where_there_are_several_folds(folds, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(dots.style, "save", lambda figure, *names: figures.append(figure))
    dots.gap_dots(report.gap_values(pooled.chosen(results(("one",), folds, OURS[:2]))), "map", tmp_path)
    [ax] = figures[0].axes
    assert any(bars for _, _, bars in ax.containers) == (folds > 1)
    title = figures[0]._suptitle.get_text().replace("\n", " ")
    several = "means and 1.96 standard errors over"
    assert title == f"map: train minus test, {several if folds > 1 else 'means over'} folds and seeds"
