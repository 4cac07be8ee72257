"""The command lines for the tests: run them in this process, and write the files that they read."""

import importlib
import json
from inspect import signature

from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from ltr_objectives.workbench.cli.app import app


def invoke(arguments, code, app=app):
    """Run a command; unexpected errors are raised."""
    apart = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}  # before click 8.2
    done = CliRunner(**apart).invoke(app, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.stdout + done.stderr
    return done


def run(*arguments, code=0):
    """Return the output of the command, stdout then stderr."""
    done = invoke(arguments, code)
    return done.stdout + done.stderr


def run_json(*arguments):
    return json.loads(invoke([*arguments, "--json"], 0).stdout)


def benchmark(*arguments):
    """Return the output of ``python -m benchmarks``."""
    from benchmarks import __main__ as main

    return invoke(arguments, 0, main.app).stdout


def fails(*arguments):
    """Return the one line of an error."""
    printed = run(*arguments, code=2)
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    return printed


def write_letor(path, part):
    dump_svmlight_file(part.X, part.y, str(path), zero_based=False, query_id=part.qid)
    return path


def library_predicts(library, path, X):
    """Return predictions of the library alone."""
    found = importlib.import_module(library)
    return {
        "xgboost": lambda: found.Booster(model_file=path).predict(found.DMatrix(X)),
        "lightgbm": lambda: found.Booster(model_file=path).predict(X),
        "catboost": lambda: found.CatBoost().load_model(path).predict(X),
    }[library]()
