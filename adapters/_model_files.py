"""Model files of unknown origin: the libraries end the process on many that are damaged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from ltr_objectives.adapters._model_child import RAISED, STARTED
from ltr_objectives.errors import LTRError, essence, require

OF_A_TREE = (b"\nnum_leaves=", b"\nnum_cat=", b"\nleaf_value=", b"\nshrinkage=")
LINE = rb"(?!\[[^:\n]*\n).*\n"  # of the parameters; LightGBM reads beyond one that has a bracket and no colon
END = re.compile(rb"end of trees\n(?:%s)*?end of parameters\s*(?:\npandas_categorical:(.+)\s*)?" % LINE)
AGAIN = "save or copy it again"
SECONDS, SECONDS_A_BYTE = 60, 1e-6  # to read a model on a busy machine; on damaged ones a library may not end at all


def require_sound(library: str, path: str) -> str:
    """Return ``path``; raise if the library cannot read the file and predict, which a process of its own tries."""
    require(os.path.isfile(path), f"{path!r} is not a file; give the file of a model of {library}")
    with open(path, "rb") as file:
        start = file.read(4)
    other = {b"tree": "lightgbm", b"CBM1": "catboost"}.get(start, library)
    require(other == library, f"{path} is a model of {other}; read it with {other}'s ranker")
    if library == "lightgbm":
        require_whole(path)
    if getattr(sys, "frozen", False) or not sys.executable:
        return path  # there is no Python to start
    given = json.dumps([library, os.path.abspath(path), [*map(str, sys.path)], None])
    command = [sys.executable, "-I", str(Path(__file__).with_name("_model_child.py")), given]
    seconds = SECONDS + SECONDS_A_BYTE * os.path.getsize(path)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except OSError:
        return path  # no process can be started
    except subprocess.TimeoutExpired as late:
        if STARTED.encode() not in (late.stderr or b""):
            return path
        said = f"reading it did not end within {seconds:.0f} seconds"
    else:
        text = done.stderr.decode(errors="replace")
        if done.returncode == 0 or STARTED not in text:  # without the latter, sys.executable is another program
            return path
        _, raised, message = text.rpartition(RAISED)
        said = essence(message) if raised else "it is damaged, and would end the process"
    raise LTRError(f"{path} is not a whole model of {library}: {said}; {AGAIN}")


def require_whole(path: str) -> None:
    """Raise for a LightGBM model that is cut short or damaged; LightGBM ends the process on some and reads others."""
    text = Path(path).read_bytes()
    crlf = text.startswith(b"tree\r")
    why = "its lines end in CR LF instead of LF" if crlf else "it does not begin with a line 'tree'"
    require(text.startswith(b"tree\n"), f"{path} is not a whole LightGBM model: {why}; {AGAIN}")
    found = re.search(rb"^tree_sizes=([\d ]*)\n\n", text, re.MULTILINE)
    place = found.end() if found else len(text)
    for i, size in enumerate(map(int, found[1].split()) if found else ()):
        tree = text[place : place + size]
        require(
            len(tree) == size and tree.startswith(b"Tree=%d\n" % i) and all(key in tree for key in OF_A_TREE),
            f"{path} is not a whole LightGBM model: tree {i} is cut short or damaged; {AGAIN}",
        )
        place += size
    end = END.fullmatch(text, place)
    require(end, f"{path} is not a whole LightGBM model: its end is missing or damaged; {AGAIN}")
    assert end is not None
    try:
        json.loads(end[1] or "null")
    except ValueError:
        raise LTRError(f"{path} is not a whole LightGBM model: its categories are cut short; {AGAIN}") from None
