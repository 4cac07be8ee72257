"""Small archives in MovieLens's format."""

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import movielens


def movielens_archive(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, users: int, films: int, changed: set | None = None
) -> tuple[list, dict]:
    """Write a small archive in MovieLens's format, and return its ratings and the genres of each film.

    Ratings of the users and films in ``changed`` have 6 minus the number of stars.
    """
    rng = np.random.default_rng(3)
    kinds = ["Action", "Comedy", "Drama"]
    ratings = [
        (user, int(film), int(rng.integers(1, 6)))
        for user in range(1, users + 1)
        for film in np.sort(rng.permutation(films)[: rng.integers(20, films)] + 1)
    ]
    genres = {film: [kind for kind in kinds if rng.random() < 0.5] or ["Drama"] for film in range(1, films + 1)}
    ratings = [(u, f, 6 - s if changed and (u, f) in changed else s) for u, f, s in ratings]
    lines = [(*ratings[place], 978300760) for place in rng.permutation(len(ratings))]  # in no order
    person = [(user, rng.choice(["F", "M"]), int(rng.integers(7, 70)), rng.integers(3)) for user in range(1, users + 1)]
    titles = {film: f"Né en 17 (Born) ({1930 + film})" for film in genres}
    if name == "ml-1m":
        files = {"ratings.dat": ("::", lines), "users.dat": ("::", [(*each, "48067") for each in person])}
        files["movies.dat"] = "::", [(film, titles[film], "|".join(own)) for film, own in genres.items()]
    else:
        flags = {film: [int(kind in own) for kind in kinds] for film, own in genres.items()}
        files = {"u.data": ("\t", lines), "u.genre": ("|", list(zip(kinds, range(3), strict=True)))}
        files["u.user"] = "|", [(user, age, gender, f"work {job}", "48067") for user, gender, age, job in person]
        files["u.item"] = "|", [(film, titles[film], "01-Jan-1995", "", "", *flags[film]) for film in genres]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file, (separator, rows) in files.items():
            text = "".join(separator.join(map(str, row)) + "\n" for row in rows)
            archive.writestr(f"{name}/{file}", text.encode("latin-1"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.zip").write_bytes(content.getvalue())
    monkeypatch.setitem(movielens.MD5, name, hashlib.md5(content.getvalue(), usedforsecurity=False).hexdigest())
    return ratings, genres
