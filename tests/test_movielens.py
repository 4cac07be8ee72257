"""The folds of MovieLens: users are whole, and features know no label that is ranked."""

import numpy as np
import pytest
from movielens_files import movielens_archive

from benchmarks.movielens import fetch_movielens
from ltr_objectives import LTRError

USERS, FILMS = 40, 60


@pytest.fixture(params=["ml-1m", "ml-100k"])
def name(request, monkeypatch, tmp_path):
    movielens_archive(monkeypatch, tmp_path, request.param, USERS, FILMS)
    return request.param


def test_each_user_is_in_test_once_and_a_fold_has_every_user(name, tmp_path):
    folds = [fetch_movielens(name, fold, tmp_path) for fold in range(1, 6)]
    assert sorted(np.concatenate([np.unique(fold.test.qid) for fold in folds])) == list(range(1, USERS + 1))
    for fold in folds:
        assert sorted(np.concatenate([np.unique(part.qid) for part in fold])) == list(range(1, USERS + 1))
        for part in fold:
            assert part.X.dtype == part.y.dtype == np.float32
            assert np.isfinite(part.X).all()
            np.testing.assert_array_equal(np.repeat(part.qid[np.cumsum(part.group) - 1], part.group), part.qid)
    for wrong, words in (((name, 6), "fold="), (("ml-1",), "did you mean 'ml-1m'")):
        with pytest.raises(LTRError, match=words):
            fetch_movielens(*wrong)


def test_features_are_those_of_histories(name, tmp_path, monkeypatch):
    """Numbers, means and genres against loops over the ratings of the archive."""
    ratings, genres = movielens_archive(monkeypatch, tmp_path, name, USERS, FILMS)
    fold = fetch_movielens(name, 2, tmp_path)
    order = np.random.default_rng(0).random(len(ratings))
    trains, stars, lists, own = set(fold.train.qid), {}, {}, {}
    for user in range(1, USERS + 1):
        rated = [r for _, r in sorted((x, r) for x, r in zip(order, ratings, strict=True) if r[0] == user)]
        half = len(rated) // 2
        own[user], lists[user] = rated[:half], rated[half : half + 100]
        for _, film, value in own[user] if user in trains else ():
            stars.setdefault(film, []).append(value)
    overall = np.mean(np.concatenate(list(stars.values())))
    for part in fold:
        for user in np.unique(part.qid):
            rows, shown = part.X[part.qid == user], lists[user]
            mine = [value for _, _, value in own[user]]
            np.testing.assert_array_equal(part.y[part.qid == user], [value - 1 for _, _, value in shown])
            for row, (_, film, _) in zip(rows, shown, strict=True):
                seen = stars.get(film, [])
                assert (row[0], row[7], row[8], row[9]) == (len(seen), 1930 + film, len(genres[film]), len(mine))
                assert row[1] == pytest.approx((sum(seen) + 10 * overall) / (len(seen) + 10), rel=1e-4)
                assert row[3] == pytest.approx((seen.count(5) + 2) / (len(seen) + 10), rel=1e-4)
                assert row[10] == pytest.approx((sum(mine) + 5 * overall) / (len(mine) + 5), rel=1e-4)


def test_labels_that_are_ranked_change_no_feature(name, tmp_path, monkeypatch):
    before = fetch_movielens(name, 1, tmp_path)
    shown = {(q, x) for part in before for q, x in zip(part.qid, part.X[:, 7] - 1930, strict=True)}
    movielens_archive(monkeypatch, tmp_path, name, USERS, FILMS, changed=shown)
    after = fetch_movielens(name, 1, tmp_path)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(4 - one.y, other.y)
