"""The folds of MovieLens: users are whole, and features know no label that is ranked."""

import numpy as np
import pytest

from benchmarks.movielens import READERS, movielens
from ltr_objectives import LTRError
from ltr_objectives.datasets import load_letor

USERS, FILMS = 40, 60


def write_files(folder, name, changed=()):
    """Write small files in the format of a set; return its ratings, in time, and the genres of each film.

    Ratings of the users and films in ``changed`` have 6 minus the number of stars.
    """
    rng = np.random.default_rng(3)
    kinds = ["Action", "Comedy", "Drama"]
    ratings = [
        (user, int(film), int(rng.integers(1, 6)))
        for user in range(1, USERS + 1)
        for film in rng.permutation(FILMS)[: rng.integers(20, FILMS)] + 1
    ]
    genres = {film: [kind for kind in kinds if rng.random() < 0.5] or ["Drama"] for film in range(1, FILMS + 1)}
    ratings = [(u, f, 6 - s if (u, f) in changed else s) for u, f, s in ratings]
    lines = [(*ratings[place], 978300760 + place) for place in rng.permutation(len(ratings))]  # in no order
    titles = {film: f'"Né, {film}" (Born) ({1930 + film})' for film in genres}
    own = [(film, titles[film], "|".join(kinds)) for film, kinds in genres.items()]
    if name == "ml-1m":
        files = {"ratings.dat": ("::", lines), "movies.dat": ("::", own)}
        people = [(u, rng.choice(["F", "M"]), rng.integers(7, 70), rng.integers(3)) for u in range(1, USERS + 1)]
        files["users.dat"] = "::", [(*each, "48067") for each in people]
    elif name == "ml-100k":
        flags = {film: [int(kind in own) for kind in kinds] for film, own in genres.items()}
        files = {"u.data": ("\t", lines), "u.genre": ("|", list(zip(kinds, range(3), strict=True)))}
        files["u.item"] = "|", [(film, titles[film], "01-Jan-1995", "", "", *flags[film]) for film in genres]
    else:
        quoted = [(film, '"' + title.replace('"', '""') + ' "', kinds) for film, title, kinds in own]
        files = {"ratings.csv": (",", [("userId", "movieId", "rating", "timestamp"), *lines])}
        files["movies.csv"] = ",", [("movieId", "title", "genres"), *quoted, (999, "Unseen", "(no genres listed)")]
    folder.mkdir(exist_ok=True)
    for file, (separator, rows) in files.items():
        text = "".join(separator.join(map(str, row)) + "\n" for row in rows)
        (folder / file).write_text(text, "utf8" if name == "ml-latest-small" else "latin-1")
    return ratings, genres


def folds(folder, name, changed=()):
    """Return the ratings, the genres, and the five folds that the command makes of them."""
    ratings, genres = write_files(folder, name, changed)
    movielens(name, folder, folder / "out")
    return ratings, genres, [load_letor(folder / "out" / f"Fold{fold}") for fold in range(1, 6)]


@pytest.mark.parametrize("name", READERS)
def test_users_are_whole_and_features_are_those_of_histories(name, tmp_path):
    """Numbers, means and years against loops over the ratings."""
    ratings, genres, found = folds(tmp_path, name)
    assert sorted(np.concatenate([np.unique(fold.test.qid) for fold in found])) == list(range(1, USERS + 1))
    columns = (tmp_path / "out" / "features.txt").read_text().split("\n")
    by_film = sorted(range(len(ratings)), key=lambda row: ratings[row][:2])
    order = dict(zip(by_film, np.random.default_rng(0).random(len(ratings)), strict=True))
    key = order.get if name == "ml-1m" else int
    rated = {q: sorted((r for r in range(len(ratings)) if ratings[r][0] == q), key=key) for q in range(1, USERS + 1)}
    for fold in found:
        assert sorted(np.concatenate([np.unique(part.qid) for part in fold])) == list(range(1, USERS + 1))
        stars: dict[int, list[int]] = {}
        for q in set(fold.train.qid):
            for r in rated[q][: len(rated[q]) // 2]:
                stars.setdefault(ratings[r][1], []).append(ratings[r][2])
        overall = np.mean(np.concatenate(list(stars.values())))
        for part in fold:
            assert np.isfinite(part.X).all()
            for q in np.unique(part.qid):
                half = len(rated[q]) // 2
                shown, mine = ([ratings[r] for r in rows] for rows in (rated[q][half:], rated[q][:half]))
                np.testing.assert_array_equal(part.y[part.qid == q], [value - 1 for _, _, value in shown])
                for values, (_, film, _) in zip(part.X[part.qid == q], shown, strict=True):
                    row, seen = dict(zip(columns, values, strict=False)), stars.get(film, [])
                    assert row["item_count"] == len(seen)
                    assert row["year"] == 1930 + film
                    assert (
                        row["genre_number"] == len(genres[film]) == sum(row[f"genre_{kind}"] for kind in genres[film])
                    )
                    assert row["user_count"] == half
                    assert row["item_mean"] == pytest.approx((sum(seen) + 10 * overall) / (len(seen) + 10), rel=1e-4)
                    mean = (sum(value for *_, value in mine) + 5 * overall) / (half + 5)
                    assert row["user_mean"] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("name", READERS)
def test_labels_that_are_ranked_change_no_feature(name, tmp_path):
    *_, before = folds(tmp_path, name)
    year = (tmp_path / "out" / "features.txt").read_text().split("\n").index("year")
    shown = {(q, int(x)) for part in before[0] for q, x in zip(part.qid, part.X[:, year] - 1930, strict=True)}
    *_, after = folds(tmp_path, name, shown)
    for one, other in zip(before[0], after[0], strict=True):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(4 - one.y, other.y)


def test_names_and_folders_are_checked(tmp_path):
    with pytest.raises(LTRError, match="did you mean 'ml-1m'"):
        movielens("ml-1", tmp_path)
    with pytest.raises(LTRError, match="is no folder"):
        movielens("ml-1m", tmp_path / "missing")
