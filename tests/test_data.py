"""Generated data, LETOR files, measures of items, and runs and judgements as dictionaries."""

import bz2
import gzip
import lzma
import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from ltr_objectives import LTRError, LTRWarning, evaluate, evaluate_items, to_qrels, to_run
from ltr_objectives.datasets import from_table, load_letor, make_ranking, make_ranking_fold
from ltr_objectives.workbench.data import MSLR_SHARES

ROWS = "2 qid:7 1:0.5 3:1.25 # docid = GX-1 inc = 1\n0 qid:7 2:-3\n# a line of its own\n1 qid:3 1:1e-3\n"


def test_generated_data_have_the_shape_of_mslr():
    X, y, group, qid = make_ranking(queries=500, seed=3)
    assert X.shape == (len(y), 136)
    assert (X.dtype, y.dtype, group.dtype, qid.dtype) == (np.float32, np.float32, np.int64, np.int64)
    assert np.isfinite(X).all()
    np.testing.assert_allclose(np.bincount(y.astype(int)) / len(y), MSLR_SHARES, atol=1e-3)
    assert 105 < group.mean() < 135
    assert group.min() >= 1
    assert np.array_equal(qid, np.repeat(np.arange(1, 501), group))
    assert np.isclose(np.log(group).std(), 0.6, atol=0.08)


def test_the_seed_decides_every_byte_and_folds_are_the_queries_of_one_data_set():
    train, vali, test = fold = make_ranking_fold((5, 2, 3), seed=4, features=20, mean_length=8)
    whole, other = (make_ranking(10, seed, features=20, mean_length=8) for seed in (4, 5))
    assert np.concatenate([train.X, vali.X, test.X]).tobytes() == whole.X.tobytes() != other.X.tobytes()
    assert [len(part.group) for part in fold] == [5, 2, 3]
    assert all(part.group.sum() == len(part.y) == len(part.X) == len(part.qid) for part in fold)


def test_grades_agree_with_relevance_as_far_as_asked_and_noise_hides_them():
    whole, half, none = (make_ranking(200, 1, features=20, agreement=a, noise=0.0) for a in (1.0, 0.5, 0.0))
    relevant, overlap = whole.y > 0, []
    for data in (whole, half, none):
        assert np.array_equal(data.X, whole.X)
        assert np.array_equal(data.y > 0, relevant)
        assert np.array_equal(np.bincount(data.y.astype(int)), np.bincount(whole.y.astype(int)))
        overlap.append(np.corrcoef(data.y[relevant], whole.y[relevant])[0, 1])
    assert overlap[0] > overlap[1] + 0.2 > overlap[2] + 0.3
    assert abs(overlap[2]) < 0.3  # the two functions may share features
    default, noisy = (make_ranking(200, 1, features=20, noise=noise).y for noise in (1.1, 5.0))
    assert np.corrcoef(whole.y, default)[0, 1] > np.corrcoef(whole.y, noisy)[0, 1] + 0.2


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("as_id", [int, float, str])
def test_a_table_becomes_whole_queries_whose_index_leads_back(form, as_id, rng):
    table = pd.DataFrame({"x": np.arange(60.0), "q": rng.integers(0, 9, 60).astype(as_id), "w": rng.random(60)})
    table = table.assign(y=table.x % 3)
    data = from_table(form(table), label="y", qid="q", weight="w")
    assert [*data.X] == ["x"]
    found = data.X.assign(q=data.qid, w=data.weight, y=data.y)
    pd.testing.assert_frame_equal(found.sort_index(), table, check_dtype=False)
    assert [*dict.fromkeys(data.qid)] == [*dict.fromkeys(table.q)]
    assert np.array_equal(np.repeat([*dict.fromkeys(table.q)], data.group), data.qid)
    assert found.groupby("q").x.apply(lambda x: x.is_monotonic_increasing).all()
    assert from_table(form(table), label="y", qid="q").weight is None


def test_a_table_has_goals_and_clicks_in_the_order_of_its_rows(rng):
    columns = {name: rng.permutation(60) for name in ("x", "sold", "price", "shown", "seen", "y")}
    table = pd.DataFrame(columns, index=rng.permutation(60)).assign(q=[1, "a", 2.5] * 20)  # text and numbers
    data = from_table(table, label="y", qid="q", labels=["sold", "price"], position="shown", propensity="seen")
    assert [*data.X] == ["x"]
    by_row = table.loc[data.X.index]
    named = {"y": data.y, "shown": data.position, "seen": data.propensity, **data.labels}
    for name, found in named.items():
        assert np.array_equal(found, by_row[name])
    last = data.select([2])
    assert [*last.labels] == ["sold", "price"]
    for found, name in ((last.position, "shown"), (last.propensity, "seen"), (last.labels["price"], "price")):
        assert np.array_equal(found, by_row.loc[last.X.index, name])


def test_an_index_by_which_rows_cannot_be_found_is_warned_of():
    table = pd.DataFrame({"q": [1, 1], "y": [0, 1], "x": [1, 2]})
    with pytest.warns(LTRWarning, match="reset_index"):
        from_table(pd.concat([table, table]), label="y", qid="q")
    from_table(pd.concat([table, table], ignore_index=True), label="y", qid="q")


def test_queries_are_selected_whole_and_data_pickle():
    data = pickle.loads(pickle.dumps(make_ranking(4, features=10, mean_length=4)))
    for positions in ([2, 0], [-2, 0], np.array([2, 0])):
        chosen = data.select(positions)
        assert list(dict.fromkeys(chosen.qid)) == [3, 1]
        assert np.array_equal(chosen.X, np.concatenate([data.X[data.qid == 3], data.X[data.qid == 1]]))


def write(path, text):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(path.suffix.lower(), bytes)
    path.write_bytes(compress(text.encode()))
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.dat.bz2", "a.xz", "a.TXT.GZ"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_letor_file_is_read_with_comments_plain_or_compressed(tmp_path, name, mark):
    X, y, group, qid = load_letor(write(tmp_path / name, mark + ROWS))
    assert np.array_equal(X, np.array([[0.5, 0, 1.25], [0, -3, 0], [1e-3, 0, 0]], np.float32))
    assert (X.dtype, y.dtype, group.dtype) == (np.float32, np.float32, np.int64)
    assert (y.tolist(), group.tolist(), qid.tolist()) == ([2, 0, 1], [2, 1], [7, 7, 3])


@pytest.mark.parametrize(
    ("names", "below"),
    [
        (("train.txt", "vali.txt", "test.txt"), ""),
        (("train.txt.gz", "valid.txt.gz", "test.txt.gz"), ""),
        (("TRAIN.TXT", "Vali.txt", "test.TXT.xz"), ""),
        (("set1.train.txt", "set1.valid.txt", "set1.test.txt"), ""),
        (("set1.train.txt", "set1.valid.txt", "set1.test.txt", "set2.train.txt", "set2.test.txt"), "set1"),
    ],
)
def test_the_parts_of_a_fold_are_found_and_have_equally_many_features(tmp_path, names, below):
    for name in names:
        write(tmp_path / name, ROWS if "test" in name.lower() else "1 qid:1 5:1\n")
    assert [part.X.shape for part in load_letor(tmp_path / below)] == [(1, 5), (1, 5), (3, 5)]


def test_dense_rows_far_beyond_the_text_are_refused(tmp_path):
    """One file is too wide, or a part that one line of another part widens."""
    write(tmp_path / "a.txt", "0 qid:1 1:1\n0 qid:1 2147483646:1\n")
    with pytest.raises(LTRError, match=r"a\.txt would have 2,147,483,646 columns"):
        load_letor(tmp_path / "a.txt")
    with pytest.raises(LTRError, match=r"a\.txt would have 700,000 columns in 1 rows"):
        load_letor(write(tmp_path / "a.txt", "0 qid:1 700000:1\n"))
    write(tmp_path / "train.txt", "".join(f"0 qid:{q} 1:1 2:1\n" for q in range(2000)))
    write(tmp_path / "test.txt", "0 qid:1 1:1\n1 qid:1 1000000:1\n")
    with pytest.raises(LTRError, match=r"test\.txt would have"):
        load_letor(tmp_path)
    write(tmp_path / "test.txt", "0 qid:1 1:1\n1 qid:1 1000:1\n")
    assert load_letor(tmp_path).train.X.shape == (2000, 1000)


BROKEN = (
    "good qid:3 1:1", "1", "1 1:1 qid:3", "1 qid", "1 qid:3.5 1:1", "1 qid:9999999999999999999 1:1",
    "1 qid:3_1 1:1", "1_0 qid:3 1:1", "1 qid:3 1_1:1", "1 qid:3 1:1_0",  # which Python reads without the underscore
    "1 qid:3 1:1 2:", "1 qid:3 a:1", "1 qid:3 9999999999:1", "1 qid:3 0:1", "1 qid:3 2:1 1:1",
)  # fmt: skip


@pytest.mark.parametrize("end", ["", "\n1 qid:4 1:1\n"])
@pytest.mark.parametrize("line", [*BROKEN, "1 qid:3 1:1\n1 qid:7 1:1"])
def test_a_broken_line_and_unsorted_queries_are_refused(tmp_path, line, end):
    for name in ("a.txt", "a.dat.bz2"):
        with pytest.raises(LTRError, match=name):
            load_letor(write(tmp_path / name, ROWS + line + end))


def test_files_without_rows_cut_short_and_of_other_kinds_are_refused(tmp_path):
    whole = write(tmp_path / "a.txt.gz", ROWS * 1000).read_bytes()
    for content in (b"", gzip.compress(b""), whole[:-20], whole[:30] + b"x" + whole[31:], b"no such kind"):
        (tmp_path / "a.txt.gz").write_bytes(content)
        with pytest.raises(LTRError, match=r"a\.txt\.gz"):
            load_letor(tmp_path / "a.txt.gz")


def by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected):
    shown, novelty, diversity, serendipity, first = set(), [], [], [], 0
    for size in sizes:
        rows = sorted(range(first, first + size), key=lambda row: (-scores[row], row))[:k]
        first += size
        shown |= {item[row] for row in rows}
        novelty.append(np.mean([-np.log2(familiarity[row]) for row in rows]))
        serendipity.append(np.mean([labels[row] > 0 and not expected[row] for row in rows]))
        pairs = [(vectors[a], vectors[b]) for a, b in combinations(rows, 2)]
        if pairs:
            diversity.append(1 - np.mean([v @ w / np.sqrt((v @ v) * (w @ w)) for v, w in pairs]))
    means = [np.mean(values) if values else np.nan for values in (novelty, diversity, serendipity)]
    return [len(shown), len(shown) / len(set(item)), *means]


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("kind", [int, str])
def test_measures_of_items_are_those_of_the_definitions(k, kind):
    rng = np.random.default_rng(k)
    sizes = np.array([1, 5, 2, 40, 7])
    n = int(sizes.sum())
    scores = rng.integers(0, 6, n).astype(float)  # with ties
    item = [kind(i) for i in rng.integers(0, 30, n)]
    familiarity, vectors = rng.uniform(0.01, 1, n), rng.normal(size=(n, 4))
    labels, expected = rng.integers(0, 3, n), rng.random(n) < 0.4
    found = evaluate_items(
        scores, item, sizes, k=k, familiarity=familiarity, vectors=vectors, labels=labels, expected=expected
    )
    assert list(found) == [f"{name}@{k}" for name in ("items", "coverage", "novelty", "diversity", "serendipity")]
    expected = by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected)
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12)


FORMS = {
    "lists": np.ndarray.tolist,
    "column of lists": lambda x: pd.Series(x.tolist()),
    "column of arrays": lambda x: pd.Series([*x]).to_numpy(),
    "DataFrame": pd.DataFrame,
    "sparse matrix": scipy.sparse.coo_matrix,
    "sparse array": scipy.sparse.csc_array,
    "polars": lambda x: pl.Series(x.tolist()),
}


@pytest.mark.parametrize("form", FORMS)
def test_vectors_of_items_in_every_form(form, rng):
    vectors, lists = rng.normal(size=(5, 3)), ([3, 1, 2, 1, 2], [*"abcde"], [3, 2])
    assert evaluate_items(*lists, vectors=FORMS[form](vectors)) == evaluate_items(*lists, vectors=vectors)


def test_items_of_query_ids_and_a_catalogue():
    qid, scores, item = [4, 4, 4, 9, 9], [1.0, 2.0, 3.0, 1.0, 2.0], [1, 2, 3, 1, 3]
    assert evaluate_items(scores, item, qid=qid, k=1, catalogue=10) == {"items@1": 1.0, "coverage@1": 0.1}


@pytest.mark.parametrize("ids", ["group", "qid"])
def test_trec_eval_computes_our_values_of_runs_and_judgements(ids, rng):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    sizes = rng.integers(1, 20, 40)
    scores, labels = rng.normal(size=sizes.sum()).round(1), rng.integers(0, 4, sizes.sum())  # with ties
    of = {"group": sizes} if ids == "group" else {"qid": np.repeat(rng.permutation(100)[:40], sizes)}
    run, qrels = to_run(scores, **of), to_qrels(labels, **of)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "map", "recip_rank"}).evaluate(run)
    for ours, name in {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank"}.items():
        expected = [theirs[query][name] for query in run]
        assert evaluate(ours, scores, labels, **of, convention="trec_eval") == pytest.approx(np.mean(expected))


def test_documents_of_runs_have_names_and_may_have_no_judgement():
    scores, qid, item = [1.0, 2.0, 3.0], ["a", "a", "b"], np.array([7, 8, 7])
    assert to_run(scores, qid=qid, item=item) == {"a": {"7": 1.0, "8": 2.0}, "b": {"7": 3.0}}
    assert to_qrels([np.nan, 0, 2], qid=qid, item=item) == {"a": {"8": 0}, "b": {"7": 2}}
    for same in (np.array([7.0, 7.0, 8.0]), [7, 7, 8], ["7", "7", "8"], np.array([b"7", b"7", b"8"])):
        assert [*to_run(scores, qid=same)] == ["7", "8"]
        assert [*to_run(scores[1:], [2], item=same[1:])["1"]] == ["7", "8"]
    assert to_qrels([np.nan, np.nan, 1], [2, 1], item=["a", "b", "b"]) == {"1": {}, "2": {"b": 1}}
    assert {type(label) for of in to_qrels(np.float32([1, 0, 2]), [3]).values() for label in of.values()} == {int}
