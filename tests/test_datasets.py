"""Generated data has MSLR's shape; LETOR files are parsed once, and bad ones are refused clearly."""

import builtins
import bz2
import gzip
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

from ltr_objectives import LTRError
from ltr_objectives.workbench.data import (
    MSLR_SHARES,
    load_letor,
    make_ranking,
    make_ranking_fold,
)

ROWS = "2 qid:7 1:0.5 3:1.25 # docid = GX-1 inc = 1\n0 qid:7 2:-3\n# a line of its own\n1 qid:3 1:1e-3\n"


@pytest.fixture(scope="module")
def data():
    return make_ranking(queries=500, seed=3)


def test_generated_data_has_the_shape_of_mslr(data):
    X, y, group, qid = data
    assert X.shape == (len(y), 136)
    assert (X.dtype, y.dtype, group.dtype, qid.dtype) == (np.float32, np.float32, np.int64, np.int64)
    assert np.isfinite(X).all()
    np.testing.assert_allclose(np.bincount(y.astype(int)) / len(y), MSLR_SHARES, atol=1e-3)
    assert 105 < group.mean() < 135
    assert group.min() >= 1
    assert np.array_equal(qid, np.repeat(np.arange(1, 501), group))
    assert np.isclose(np.log(group).std(), 0.6, atol=0.08)


def test_the_seed_decides_every_byte():
    a, b, c = (make_ranking(queries=20, seed=seed) for seed in (1, 1, 2))
    assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))
    assert a.X.tobytes() != c.X.tobytes()


def test_folds_are_the_queries_of_one_data_set():
    train, vali, test = fold = make_ranking_fold((5, 2, 3), seed=4, features=20, mean_length=8)
    whole = make_ranking(10, 4, features=20, mean_length=8)
    assert np.array_equal(np.concatenate([train.X, vali.X, test.X]), whole.X)
    assert [len(part.group) for part in fold] == [5, 2, 3]
    assert all(part.group.sum() == len(part.y) == len(part.X) == len(part.qid) for part in fold)


def test_select_takes_whole_queries_in_the_order_asked_for():
    data = make_ranking(4, features=10, mean_length=4)
    chosen = data.select([2, 0])
    assert list(dict.fromkeys(chosen.qid)) == [3, 1]
    assert np.array_equal(chosen.X, np.concatenate([data.X[data.qid == 3], data.X[data.qid == 1]]))


def test_data_pickles_and_stays_small_in_print():
    data = pickle.loads(pickle.dumps(make_ranking(2, mean_length=3)))
    assert repr(data) == f"RankingData({len(data.y)} rows, 2 queries, 136 features)"
    with pytest.raises(AttributeError):
        data.y = None


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"queries": 0}, "queries"),
        ({"features": 3}, "features"),
        ({"mean_length": 0}, "mean_length"),
        ({"shares": (0.5, 0.6)}, "shares"),
        ({"noise": -1}, "noise"),
        ({"agreement": 1.5}, "agreement"),
        ({"agreement": "all"}, "agreement"),
    ],
)
def test_arguments_that_cannot_be_right_are_named(arguments, word):
    with pytest.raises(LTRError, match=word):
        make_ranking(**arguments)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_file_is_read_with_comments_plain_or_compressed(tmp_path, name):
    path = write(tmp_path / name, ROWS)
    X, y, group, qid = load_letor(path)
    assert np.array_equal(X, np.array([[0.5, 0, 1.25], [0, -3, 0], [1e-3, 0, 0]], np.float32))
    assert (X.dtype, y.dtype, group.dtype) == (np.float32, np.float32, np.int64)
    assert (y.tolist(), group.tolist(), qid.tolist()) == ([2, 0, 1], [2, 1], [7, 7, 3])


@pytest.mark.parametrize(
    ("names", "below"),
    [
        (("train.txt", "vali.txt", "test.txt"), ""),
        (("train.txt.gz", "valid.txt.gz", "test.txt.gz"), ""),
        (("set1.train.txt", "set1.valid.txt", "set1.test.txt"), ""),
        (("set1.train.txt", "set1.valid.txt", "set1.test.txt", "set2.train.txt", "set2.test.txt"), "set1"),
    ],
)
def test_the_parts_of_a_fold_are_found_and_have_equally_many_features(tmp_path, names, below):
    for name in names:
        write(tmp_path / name, ROWS if "test" in name else "1 qid:1 5:1\n")
    fold = load_letor(tmp_path / below)
    assert [part.X.shape for part in fold] == [(1, 5), (1, 5), (3, 5)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["pipe", "pipe.txt.gz"])
def test_a_pipe_is_read_once(tmp_path, name):
    pipe, there = tmp_path / name, tmp_path / f"file{Path(name).suffix}"
    os.mkfifo(pipe)
    for text in (ROWS, "2 qid:7 1:0.5\nwrong"):
        content = write(there, text).read_bytes()
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        if text == ROWS:
            found = load_letor(pipe)
            assert all(np.array_equal(a, b) for a, b in zip(found, load_letor(there), strict=True))
        else:
            with pytest.raises(LTRError, match=f"{name} cannot be read"):
                load_letor(pipe)
        writer.join()


@pytest.mark.parametrize("index", [20_000_000, 300_000_000, 2147483646])
def test_dense_rows_far_beyond_the_text_are_refused(tmp_path, index):
    path = write(tmp_path / "a.txt", f"0 qid:1 1:1\n\n0 qid:1 {index}:1 # comment\n")
    with pytest.raises(LTRError, match=f"a.txt has {index:,} columns in 2 rows"):
        load_letor(path)


def test_parts_that_one_line_of_another_makes_far_too_wide_are_refused(tmp_path):
    write(tmp_path / "train.txt", "".join(f"0 qid:{q} 1:1 2:1\n" for q in range(2000)))
    write(tmp_path / "test.txt", "0 qid:1 1:1\n1 qid:1 1000000:1\n")
    with pytest.raises(LTRError, match=r"test\.txt has 1,000,000 columns, also for the 2,000 rows of train"):
        load_letor(tmp_path)
    write(tmp_path / "test.txt", "0 qid:1 1:1\n1 qid:1 1000:1\n")
    assert load_letor(tmp_path).train.X.shape == (2000, 1000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:1\n0 1:2\n", " cannot be read"),
        ("", " has no rows"),
        ("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n", ": qid is not sorted: query 1 occurs in several places"),
    ],
)
def test_bad_text_is_refused_with_the_name_of_the_file(tmp_path, text, message):
    with pytest.raises(LTRError, match=f"bad.txt{message}"):
        load_letor(write(tmp_path / "bad.txt", text))


BROKEN = (
    "good qid:3 1:1", "1", "1 1:1 qid:3", "1 qid", "1 qid:3.5 1:1", "1 qid:9999999999999999999 1:1",
    "1 qid:3 1:1 2:", "1 qid:3 a:1", "1 qid:3 9999999999:1", "1 qid:3 0:1", "1 qid:3 2:1 1:1",
)  # fmt: skip


@pytest.mark.parametrize("end", ["", "\n", "\n1 qid:4 1:1\n"])
@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_refused(tmp_path, line, end):
    for name in ("a.txt", "a.txt.gz", "a.dat.bz2"):
        with pytest.raises(LTRError, match=name):
            load_letor(write(tmp_path / name, ROWS + line + end))


def test_files_cut_short_and_of_other_kinds_are_refused(tmp_path):
    whole = write(tmp_path / "a.txt.gz", ROWS * 1000).read_bytes()
    for content in (whole[:-20], whole[:30] + b"x" + whole[31:], b"no such kind"):
        (tmp_path / "a.txt.gz").write_bytes(content)
        with pytest.raises(LTRError, match=r"a\.txt\.gz.*LETOR text is 'label qid:1 1:0\.5 \.\.\.'"):
            load_letor(tmp_path / "a.txt.gz")


def test_missing_files_are_refused_with_a_hint(tmp_path):
    with pytest.raises(LTRError, match="nowhere does not exist"):
        load_letor(tmp_path / "nowhere")
    (tmp_path / "Fold1").mkdir()
    write(tmp_path / "Fold1" / "train.txt", ROWS)
    with pytest.raises(LTRError, match=r"pass one fold, such as .*Fold1"):
        load_letor(tmp_path)
    with pytest.raises(LTRError, match=r"no test file, only train\.txt"):
        load_letor(tmp_path / "Fold1")
    write(tmp_path / "set1.train.txt", ROWS)
    write(tmp_path / "set2.train.txt", ROWS)
    with pytest.raises(LTRError, match=r"several data sets; pass one of .*set1, .*set2"):
        load_letor(tmp_path)


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def no_sklearn(name, *rest):
        if name.startswith("sklearn"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    path = write(tmp_path / "a.txt", ROWS)
    monkeypatch.setattr(builtins, "__import__", no_sklearn)
    with pytest.raises(ImportError, match=r"pip install scikit-learn.*sklearn"):
        load_letor(path)


def write(path, text):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(text.encode()))
    return path
