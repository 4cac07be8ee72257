"""``python -m benchmarks movielens``: the folds of MovieLens, made from the files that GroupLens publishes.

Users are queries, films documents, and labels the stars, rounded up, less one. Half of a user's ratings is history: the
first in time, in MovieLens-1M a random half. Of the others the first are ranked. Features are computed from the user's
history and those of the train users, so they read no label that is ranked.

GroupLens allows research use with acknowledgement (F. M. Harper, J. A. Konstan: The MovieLens Datasets: History and
Context. ACM Transactions on Interactive Intelligent Systems 5(4), 2015), and forbids redistribution and commercial use
without permission. The README of the files has the terms.
"""

import gzip
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds
from typer import Argument, Option, echo

from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require

FACTORS, FOLDS = 16, 5  # factors of the SVD
COLUMNS = (  # features with and without facts of people; the genres and factors of the film follow
    "item_count item_mean item_spread item_liked item_hated year genre_number user_count user_mean user_deviation "
    "user_bias taste_sum taste_best taste_worst share_sum factors neighbours support closest year_gap popular_gap "
    "quality_gap",
    "item_count item_mean item_spread item_fives item_low item_women item_age year genre_number user_count user_mean "
    "user_deviation user_bias user_female user_age age_gap year_gap popular_gap quality_gap taste_sum taste_best "
    "taste_worst taste_decade share_sum taste_of_female taste_of_age taste_of_occupation neighbours support closest "
    "like_fives like_low like_seen factors factors_4",
)


class Ratings(NamedTuple):
    """The ratings by user, history first, and facts of films and users; both are numbered from 0."""

    users: np.ndarray
    films: np.ndarray
    stars: np.ndarray
    genres: pd.DataFrame  # a flag for each film and genre
    year: np.ndarray  # of each film, nan if it is not known
    people: dict[str, np.ndarray]  # gender, age and occupation of each user, if features read them
    most: int  # documents of a query


def _read(file: Path, separator: str, **columns: int) -> pd.DataFrame:
    """Read columns of a file of the old format, in which quotes are letters."""
    engine: Any = "python" if len(separator) > 1 else "c"
    table = pd.read_csv(file, sep=separator, header=None, engine=engine, encoding="latin-1", quoting=3)
    return table[list(columns.values())].set_axis(list(columns), axis=1)


def _year(titles: Any) -> np.ndarray:
    """Return the years at the ends of titles."""
    found: np.ndarray = titles.str.extract(r"\((\d{4})\)\s*$")[0].to_numpy(float)
    return found


def _in_time(ratings: pd.DataFrame) -> np.ndarray:
    return ratings.sort_values(["user", "time", "film"])[["user", "film", "stars"]].to_numpy().T


def ml_1m(source: Path) -> Ratings:
    """Read ``ratings.dat``, ``movies.dat`` and ``users.dat`` of MovieLens-1M."""
    ratings = _read(source / "ratings.dat", "::", user=0, film=1, stars=2).sort_values(["user", "film"])
    order = np.lexsort((np.random.default_rng(0).random(len(ratings)), ratings["user"]))
    users, films, stars = ratings.to_numpy()[order].T
    about = _read(source / "movies.dat", "::", film=0, title=1, genres=2).set_index("film")
    numbers = range(1, about.index.max() + 1)  # some are no film's
    genres = about["genres"].str.get_dummies().reindex(numbers, fill_value=0)
    people = _read(source / "users.dat", "::", user=0, female=1, age=2, occupation=3).sort_values("user")
    people["female"] = people["female"] == "F"
    facts = {name: people[name].to_numpy(float) for name in ("female", "age", "occupation")}
    return Ratings(users - 1, films - 1, stars, genres, _year(about["title"].reindex(numbers)), facts, 100)


def ml_100k(source: Path) -> Ratings:
    """Read ``u.data``, ``u.item`` and ``u.genre`` of MovieLens-100K."""
    users, films, stars = _in_time(_read(source / "u.data", "\t", user=0, film=1, stars=2, time=3))
    kinds = _read(source / "u.genre", "|", name=0)["name"]
    about = _read(source / "u.item", "|", title=1, **{kind: 5 + n for n, kind in enumerate(kinds)})
    return Ratings(users - 1, films - 1, stars, about[list(kinds)], _year(about["title"]), {}, 120)


def ml_latest_small(source: Path) -> Ratings:
    """Read ``ratings.csv`` and ``movies.csv`` of the small set of September 2018, ml-small-2018 in the studies."""
    table = pd.read_csv(source / "ratings.csv").set_axis(["user", "film", "stars", "time"], axis=1)
    rated, table["film"] = np.unique(table["film"], return_inverse=True)
    users, films, stars = _in_time(table)
    about = pd.read_csv(source / "movies.csv").set_index("movieId").loc[rated]
    genres = about["genres"].str.get_dummies().drop(columns="(no genres listed)", errors="ignore")
    return Ratings(users.astype(int) - 1, films.astype(int), stars, genres, _year(about["title"]), {}, 120)


READERS = {"ml-1m": ml_1m, "ml-100k": ml_100k, "ml-latest-small": ml_latest_small}


def _mean(cells: np.ndarray, values: np.ndarray, size: int, prior: float, shrink: float) -> np.ndarray:
    """Return the mean of the values in each cell, shrunk towards a prior."""
    return (np.bincount(cells, values, size) + prior) / (np.bincount(cells, minlength=size) + shrink)


def _one_hot(values: np.ndarray) -> np.ndarray:
    kinds, which = np.unique(values, return_inverse=True)
    return np.eye(len(kinds))[which]


def features(data: Ratings, history: np.ndarray, trains: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
    """Return the features of ``rows`` from the rows of ``history``; ``trains`` is True for the users of train."""
    people, genres, number, size = data.people, data.genres.to_numpy(float), len(trains), len(data.year)
    users, films, stars = data.users[history], data.films[history], data.stars[history]
    u, i, known, year = data.users[rows], data.films[rows], trains[users], np.nan_to_num(data.year, nan=1990)

    def of_film(values: np.ndarray, prior: float, shrink: float = 10) -> np.ndarray:
        return _mean(films[known], values[known], size, prior, shrink)[i]

    overall, count, seen = stars[known].mean(), np.bincount(films[known], minlength=size), np.bincount(users)
    mean = _mean(films[known], stars[known], size, 10 * overall, 10)
    average, bias = _mean(users, stars, number, 5 * overall, 5), _mean(users, stars - mean[films], number, 0, 5)
    residual = stars - mean[films] - bias[users]
    matrix, rated = (csr_matrix((of, (users, films)), (number, size)) for of in (residual, np.ones(len(users))))
    base, seen_base = (csr_matrix(diags(trains.astype(float)) @ each) for each in (matrix, rated))
    flags, of_genres = genres[i], rated @ genres
    own = np.where(flags > 0, ((matrix @ genres) / (of_genres + 3))[u], np.nan)  # taste in the genres of the film
    shrink = 3 if people else 0
    columns = {
        "item_count": count[i], "item_mean": mean[i], "item_spread": np.sqrt(of_film((stars - mean[films]) ** 2, 10)),
        "item_fives": of_film(stars == 5, 2), "item_low": of_film(stars <= 2, 2),
        "item_liked": of_film(stars >= 4, 1, 4), "item_hated": of_film(stars <= 2, 1, 8),
        "year": data.year[i], "genre_number": flags.sum(1),
        "user_count": seen[u], "user_mean": average[u], "user_bias": bias[u],
        "user_deviation": np.sqrt(_mean(users, (stars - average[users]) ** 2, number, shrink, shrink))[u],
        "year_gap": data.year[i] - (rated @ year / seen)[u],
        "popular_gap": np.log1p(count)[i] - (rated @ np.log1p(count) / seen)[u],
        "quality_gap": mean[i] - (rated @ mean / seen)[u], "taste_sum": np.nansum(own, 1),
        "taste_best": np.fmax.reduce(own, 1), "taste_worst": np.fmin.reduce(own, 1),
        "share_sum": ((of_genres / seen[:, None])[u] * flags).sum(1),
    }  # fmt: skip
    if people:
        female, age, decade = people["female"], people["age"], _one_hot((np.maximum(year, 1910) - 1910) // 10)
        rater_age = of_film(age[users], 300)
        columns |= {
            "item_women": of_film(female[users], 3, 12), "item_age": rater_age, "age_gap": rater_age - age[u],
            "user_female": female[u], "user_age": age[u],
            "taste_decade": ((matrix @ decade / (rated @ decade + 3))[u] * decade[i]).sum(1),
        }  # fmt: skip
        for name, group in ((name, _one_hot(values)) for name, values in people.items()):
            columns[f"taste_of_{name}"] = ((base.T @ group / (seen_base.T @ group + 20))[i] * group[u]).sum(1)
    loadings, like = _loadings(base), _like(base, seen_base, count, bool(people))
    similar, factor = _of_history((users, films, stars, residual), loadings, like, bool(people), u, i)
    product = factor[u] * loadings[i]
    columns |= similar | {"factors": product.sum(1), "factors_4": product[:, :4].sum(1)}
    columns |= {f"genre_{kind}": flags[:, n] for n, kind in enumerate(data.genres)}
    columns |= {f"item_factor_{n}": loadings[i, n] for n in range(8)}
    columns |= {f"user_factor_{n}": factor[u, n] for n in range(4)}
    names = COLUMNS[bool(people)].split() + [f"genre_{kind}" for kind in data.genres]
    names += [f"item_factor_{n}" for n in range(6 if people else 8)]
    names += [f"user_factor_{n}" for n in range(0 if people else 4)]
    return pd.DataFrame({name: columns[name] for name in names}).astype(np.float32).fillna(0)


def _loadings(base: Any) -> np.ndarray:
    """Return the singular vectors of the residuals of train, by film and factor, the strongest first."""
    _, strength, directions = svds(base, FACTORS, v0=np.random.default_rng(0).normal(size=min(base.shape)))
    order = np.argsort(-strength)
    loadings = directions[order].T * np.sqrt(strength[order])
    return loadings * np.where(loadings.sum(0) < 0, -1, 1)  # their signs are arbitrary


def _like(base: Any, seen_base: Any, count: np.ndarray, people: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return how alike two films are, by the residuals of their users, and by the users who saw both."""
    norms = np.sqrt(np.asarray(base.multiply(base).sum(0)).ravel()) + (1 if people else 2)
    near, both = (base.T @ base).toarray() / norms[:, None] / norms, (seen_base.T @ seen_base).toarray()
    return near * both / (both + 20) if people else near, both / np.sqrt(np.outer(count + 10, count + 10))


def _of_history(
    history: tuple[np.ndarray, ...], loadings: np.ndarray, like: tuple[np.ndarray, ...], people: bool,
    u: np.ndarray, i: np.ndarray,
) -> tuple[dict[str, np.ndarray], np.ndarray]:  # fmt: skip
    """Return features of the films that the user saw, by how ``like`` the film they are, and factors of each user."""
    first = np.r_[0, np.cumsum(np.bincount(history[0]))]
    similar, factor = np.zeros((6, len(u))), np.zeros((len(first) - 1, FACTORS))
    for rows in np.split(np.arange(len(u)), np.flatnonzero(np.diff(u)) + 1):
        user = u[rows[0]]
        past, stars, left = (x[first[user] : first[user + 1]] for x in history[1:])
        q = loadings[past]
        factor[user] = np.linalg.solve(q.T @ q + (5 if people else 3) * np.eye(FACTORS), q.T @ left)
        pairs, seen = (of[np.ix_(i[rows], past)] for of in like)
        used, five, low = np.maximum(pairs, 0) if people else pairs, stars == 5, stars <= 2
        size = np.abs(used).sum(1)
        similar[:, rows] = (
            used @ left / (size + 0.3), size, pairs.max(1, initial=-1 if people else 0),
            pairs @ five / (five.sum() + 2), pairs @ low / (low.sum() + 2), seen.mean(1),
        )  # fmt: skip
    names = ("neighbours", "support", "closest", "like_fives", "like_low", "like_seen")
    return dict(zip(names, similar, strict=True)), factor


def movielens(
    name: Annotated[str, Argument(help=f"{', '.join(READERS)}.")],
    source: Annotated[Path, Argument(help="Folder with GroupLens's files of this set, unpacked.")],
    out: Annotated[Path, Option(help="Folder for the folds.")] = Path("results/movielens"),
) -> None:
    """Make folds of MovieLens from the ratings, for ``quality --data``."""
    check_choice("name", name, tuple(READERS))
    require(source.is_dir(), f"{source} is no folder")
    data = READERS[name](source)
    count = np.bincount(data.users)
    rank, half = np.arange(len(data.users)) - np.repeat(np.cumsum(count) - count, count), np.repeat(count // 2, count)
    history, rows = np.flatnonzero(rank < half), np.flatnonzero((rank >= half) & (rank < half + data.most))
    part = np.random.default_rng(1).permutation(len(count)) % FOLDS  # of each user
    users, labels = data.users[rows], np.ceil(data.stars[rows]).astype(int) - 1
    for fold in range(FOLDS):
        distance, folder = (part - fold) % FOLDS, out / f"Fold{fold + 1}"
        table = features(data, history, distance < 3, rows)
        lines = [
            f"{label} qid:{user + 1} " + " ".join(f"{n}:{x:.5g}" for n, x in enumerate(row, 1) if x) + "\n"
            for label, user, row in zip(labels, users, table.to_numpy(), strict=True)
        ]
        folder.mkdir(parents=True, exist_ok=True)
        for each, parts in {"train": (0, 1, 2), "vali": (3,), "test": (4,)}.items():
            with gzip.open(folder / f"{each}.txt.gz", "wt", compresslevel=3) as file:
                file.writelines(lines[row] for row in np.flatnonzero(np.isin(distance[users], parts)))
    (out / "features.txt").write_text("\n".join(table) + "\n")
    echo(f"written: {out}, {len(count):,} queries, {len(rows):,} rows, {table.shape[1]} features")
