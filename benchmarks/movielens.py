"""MovieLens as ranking data: users are queries, films documents, stars grades."""

import hashlib
import http.client
import os
import re
import urllib.request
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ltr_objectives._files import replacing, user_cache
from ltr_objectives.checks import check_choice, check_integer, refuse
from ltr_objectives.errors import LTRError
from ltr_objectives.workbench.data import RankingData, RankingFold

URL = "https://files.grouplens.org/datasets/movielens/{name}.zip"
MD5 = {"ml-1m": "c4d9eecfca2ab87c1945afe126590906", "ml-100k": "0e33842e24a9c977be4e0107933c0723"}  # of the archives
FACTORS, MOST = 16, 100  # factors of the SVD, documents of a query


def fetch_movielens(name: str = "ml-1m", fold: int = 1, folder: str | os.PathLike[str] | None = None) -> RankingFold:
    """Download MovieLens, compute features and return one of five folds, as the studies use MovieLens-1M.

    A query is a user. A random half of the user's ratings is history; of the other half, at most 100 films in random
    order are the documents. The label is the number of stars minus 1. Features are computed from the user's history and
    from the histories of the train users only, so they read no label that is ranked. Users are divided at random: three
    fifths are train, a fifth is validation and a fifth is test; over the five folds each user is in test once.

    Licence: GroupLens allows research use with acknowledgement, and forbids redistribution and commercial use without
    permission. The archive's README has the terms.

    Parameters
    ----------
    name : "ml-1m" or "ml-100k"
        MovieLens-1M has 6,040 users and 331,612 documents, MovieLens-100K 943 and 43,043. The archives have 6 and 5 MB.
    fold : int
        1 to 5.
    folder : path, optional
        Folder of the archive ``{name}.zip``, which is downloaded if it is missing. The default is ``movielens`` in
        ``$LTR_OBJECTIVES_CACHE``, else ``~/.cache/ltr_objectives/movielens`` or its like on Windows. To use a computer
        without network access, copy GroupLens's archive into the folder. Features are computed in each call, which
        takes some 10 seconds.

    Returns
    -------
    RankingFold
        Labels 0 to 4; ``qid`` is GroupLens's number of the user. There are 59 features (60 in MovieLens-100K, which
        has one more genre), rounded to five significant digits. Of the film: number, mean, spread, share of five
        stars and share of at most two stars of its ratings, share of women and mean age of its raters, year, number of
        genres. Of the user: number, mean and spread of ratings, bias, female, age. Of both: differences of age, year,
        popularity and mean from the user's; the user's taste in the genres (sum, best, worst), in the decade, and share
        of the genres; the taste of users of the same gender, age and occupation; six features from similar films in
        the history; two products of factors. Then the genres, and six factors of the film.

    Raises
    ------
    LTRError
        If the archive cannot be downloaded or is damaged; the message says which file to put where.

    References
    ----------
    F. M. Harper, J. A. Konstan: The MovieLens Datasets: History and Context. ACM Transactions on Interactive
    Intelligent Systems 5(4), 2015.

    Examples
    --------
    >>> train, vali, test = fetch_movielens("ml-1m", fold=1)
    >>> train
    RankingData(200,055 rows, 3,624 queries, 59 features)
    """
    check_choice("name", name, tuple(MD5))
    fold = check_integer("fold", fold)
    if fold > 5:
        refuse("fold", fold, "must be 1 to 5")
    ratings, about = _read(zipfile.ZipFile(BytesIO(_archive(name, folder))), name)
    users = len(about["age"])
    count = np.bincount(ratings[0], minlength=users)
    rank = np.arange(ratings.shape[1]) - np.repeat(np.cumsum(count) - count, count)
    half = np.repeat(count // 2, count)
    history, shown = ratings[:, rank < half], ratings[:, (rank >= half) & (rank < half + MOST)]
    part = (np.random.default_rng(1).permutation(users) % 5 - fold + 1) % 5  # of each user
    X = _features(history, part < 3, shown[0], shown[1], about)
    rows = (np.flatnonzero(np.isin(part[shown[0]], parts)) for parts in ((0, 1, 2), 3, 4))
    y, qid = (shown[2] - 1).astype(np.float32), shown[0] + 1
    return RankingFold(*(RankingData(X[r], y[r], np.unique(qid[r], return_counts=True)[1], qid[r]) for r in rows))


def _archive(name: str, folder: str | os.PathLike[str] | None) -> bytes:
    """Read the archive, after downloading it if it is missing."""
    url, cache = URL.format(name=name), os.environ.get("LTR_OBJECTIVES_CACHE")
    file = (Path(cache or user_cache(), "movielens") if folder is None else Path(folder).expanduser()) / f"{name}.zip"
    try:
        content = file.read_bytes() if file.exists() else urllib.request.urlopen(url, timeout=60).read()
    except (OSError, http.client.HTTPException) as error:
        raise LTRError(f"{url} is not available: {error}; download it by other means to {file}") from None
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != MD5[name]:
        where, remedy = (file, f"delete it, or replace it by {url}") if file.exists() else (url, "try again")
        raise LTRError(f"{where} is damaged: its MD5 sum is {found}, not {MD5[name]}; {remedy}")
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as new:
            new.write_bytes(content)
    return content


def _read(archive: zipfile.ZipFile, name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read ratings (user, film, stars) by user, in random order within each user, and facts of users and films."""

    def lines(file: str, separator: str) -> list[list[str]]:
        text = archive.read(f"{name}/{file}").decode("latin-1")
        return [line.split(separator) for line in text.replace("\r", "").split("\n") if line]

    if name == "ml-1m":
        table, people, films = lines("ratings.dat", "::"), lines("users.dat", "::"), lines("movies.dat", "::")
        gender, age, genres = 1, 2, [film[2].split("|") for film in films]
    else:
        table, people, films = lines("u.data", "\t"), lines("u.user", "|"), lines("u.item", "|")
        names = [line[0] for line in lines("u.genre", "|")]
        gender, age, genres = 2, 1, [[names[g] for g, flag in enumerate(film[5:]) if flag == "1"] for film in films]
    user, item, stars = np.array([row[:3] for row in table]).astype(np.int64).T
    order = np.lexsort((item, user))
    user, item, stars = user[order] - 1, item[order] - 1, stars[order]
    order = np.lexsort((np.random.default_rng(0).random(len(user)), user))
    kinds, number = sorted({g for each in genres for g in each}), max(int(film[0]) for film in films)
    about: dict[str, Any] = {"genres": np.zeros((number, len(kinds))), "year": np.zeros(number)}
    about |= {"female": np.array([row[gender] == "F" for row in people], np.int64)}
    about |= {"age": np.array([int(row[age]) for row in people])}
    about |= {"occupation": np.unique([row[3] for row in people], return_inverse=True)[1]}
    for film, own in zip(films, genres, strict=True):
        year = re.findall(r"\((\d{4})\)", film[1])
        about["year"][int(film[0]) - 1] = year[-1] if year else 1995  # one film of MovieLens-100K has no name either
        about["genres"][int(film[0]) - 1, [kinds.index(g) for g in own]] = 1
    return np.stack((user, item, stars))[:, order], about


def _tastes(rows: np.ndarray, kinds: np.ndarray, residual: np.ndarray, shape: tuple[int, int], shrink: float) -> Any:
    """Return mean residual by row and kind, shrunk towards 0."""
    cells, size = rows * shape[1] + kinds, shape[0] * shape[1]
    return (np.bincount(cells, residual, size) / (np.bincount(cells, minlength=size) + shrink)).reshape(shape)


def _features(history: np.ndarray, trains: np.ndarray, u: np.ndarray, i: np.ndarray, about: dict[str, Any]) -> Any:
    """Return one row for each user and film of ``u`` and ``i``, from the users, films and stars of the history."""
    from scipy.sparse import csr_matrix, diags

    users, films, stars = history
    known = trains[users]
    film = _of_films(history[:, known], about)
    user = _of_users(history, film["mean"], stars[known].mean(), about)
    residual = stars - film["mean"][films] - user["bias"][users]
    matrix, rated = (csr_matrix((values, (users, films)), (len(about["age"]), len(about["year"])))
                     for values in (residual, np.ones(len(users))))  # fmt: skip
    gaps = [film["rater_age"][i] - user["age"][u]]
    for values in (film["year"], np.log1p(film["count"]), film["mean"]):
        gaps.append(values[i] - (rated @ values / user["seen"])[u])
    genres, flags = about["genres"], about["genres"][i]
    taste, share = (matrix @ genres) / (rated @ genres + 3), (rated @ genres) / user["seen"][:, None]
    own = np.where(flags > 0, taste[u], np.nan)
    decade = ((np.maximum(film["year"], 1910) - 1910) // 10).astype(np.int64)
    shape = len(about["age"]), decade.max() + 1
    tastes = [
        np.nansum(own, 1), np.fmax.reduce(own, 1), np.fmin.reduce(own, 1),
        _tastes(users, decade[films], residual, shape, 3)[u, decade[i]], (share[u] * flags).sum(1),
    ]  # fmt: skip
    ages = np.digitize(about["age"], (18, 25, 35, 45, 50, 56))  # those of MovieLens-1M
    for group in (about["female"], ages, about["occupation"]):
        shape = len(about["year"]), group.max() + 1
        tastes.append(_tastes(films[known], group[users[known]], residual[known], shape, 20)[i, group[u]])
    base, seen_base = (csr_matrix(diags(trains.astype(float)) @ each) for each in (matrix, rated))
    loadings = _loadings(base)
    similar, factor = _of_neighbours(history, residual, _near(base, seen_base, film["count"]), loadings, u, i)
    product = factor[u] * loadings[i]
    X = np.column_stack([
        *(values[i] for values in film.values()), *(values[u] for values in user.values()), *gaps, *tastes, *similar,
        product.sum(1), product[:, :4].sum(1), flags, loadings[i, :6],
    ])  # fmt: skip
    return _rounded(X.astype(np.float32))


def _of_films(history: np.ndarray, about: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the features of films, from the history of the users of train."""
    users, films, stars = history
    female, age, count = about["female"], about["age"], np.bincount(films, minlength=len(about["year"]))

    def mean_of(values: np.ndarray, prior: float, shrink: float = 10) -> np.ndarray:
        return (np.bincount(films, values, len(count)) + prior) / (count + shrink)

    mean = mean_of(stars, 10 * stars.mean())
    return {
        "count": count, "mean": mean, "deviation": np.sqrt(mean_of((stars - mean[films]) ** 2, 10)),
        "fives": mean_of(stars == 5, 2), "low": mean_of(stars <= 2, 2), "female": mean_of(female[users], 3, 12),
        "rater_age": mean_of(age[users], 300), "year": about["year"], "genres": about["genres"].sum(1),
    }  # fmt: skip


def _of_users(history: np.ndarray, film_mean: np.ndarray, mean: float, about: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the features of users, from their histories; ``mean`` is that of all stars in train."""
    users, films, stars = history
    number = len(about["age"])
    seen = np.bincount(users, minlength=number)
    average = (np.bincount(users, stars, number) + 5 * mean) / (seen + 5)
    return {
        "seen": seen, "average": average,
        "deviation": np.sqrt((np.bincount(users, (stars - average[users]) ** 2, number) + 3) / (seen + 3)),
        "bias": np.bincount(users, stars - film_mean[films], number) / (seen + 5),
        "female": about["female"], "age": about["age"],
    }  # fmt: skip


def _loadings(base: Any) -> np.ndarray:
    """Return the singular vectors of the residuals of train, by film and factor, the strongest first."""
    from scipy.sparse.linalg import svds

    _, strength, directions = svds(base, FACTORS, v0=np.random.default_rng(0).normal(size=min(base.shape)))
    order = np.argsort(-strength)
    loadings = directions[order].T * np.sqrt(strength[order])
    return loadings * np.where(loadings.sum(0) < 0, -1, 1)


def _near(base: Any, seen_base: Any, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how alike two films are, by the residuals of their users, and by the users who saw both."""
    both = (seen_base.T @ seen_base).toarray()
    norms = np.sqrt(np.asarray(base.multiply(base).sum(0)).ravel()) + 1
    near = (base.T @ base).toarray() / norms[:, None] / norms * both / (both + 20)
    return near, both / np.sqrt(np.outer(count + 10, count + 10))


def _of_neighbours(
    history: np.ndarray, residual: np.ndarray, like: tuple[np.ndarray, np.ndarray], loadings: np.ndarray,
    u: np.ndarray, i: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return features of the films that the user saw, by how ``like`` the film they are, and factors of each user."""
    users, films, all_stars = history
    near, alike = like
    first = np.r_[0, np.cumsum(np.bincount(users))]
    similar, factor = np.zeros((6, len(u))), np.zeros((len(first) - 1, FACTORS))
    for rows in np.split(np.arange(len(u)), np.flatnonzero(np.diff(u)) + 1):
        user = u[rows[0]]
        past, left, stars = (x[first[user] : first[user + 1]] for x in (films, residual, all_stars))
        q, pairs = loadings[past], near[np.ix_(i[rows], past)]
        factor[user] = np.linalg.solve(q.T @ q + 5 * np.eye(FACTORS), q.T @ left)
        positive, five, low = np.maximum(pairs, 0), stars == 5, stars <= 2
        similar[:, rows] = (
            positive @ left / (positive.sum(1) + 0.3), positive.sum(1), pairs.max(1), pairs @ five / (five.sum() + 2),
            pairs @ low / (low.sum() + 2), alike[np.ix_(i[rows], past)].mean(1),
        )  # fmt: skip
    return similar, factor


def _rounded(X: np.ndarray) -> np.ndarray:
    """Round to five significant digits, because later ones depend on the processor."""
    exact = X.astype(np.float64)
    power = 4 - np.floor(np.log10(np.abs(exact), out=np.zeros_like(exact), where=exact != 0))
    return (np.round(exact * 10.0**power) / 10.0**power).astype(np.float32)
