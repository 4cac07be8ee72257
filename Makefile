PYTHON ?= python3
PYTHON_LOWEST ?= python3.10
BIN := .venv/bin
JOBS ?= 2
SEED ?= $(shell date +%Y%m%d)

.PHONY: demo test lint bench notebooks docs docs-serve test-wheel test-lowest test-serving test-distributed test-nightly soak clean

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: .venv/installed  ## train the three libraries, their own objectives beside ours, on generated data
	$(BIN)/python -m benchmarks demo

test: .venv/installed  ## the whole suite
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-nightly: .venv/installed  ## the property tests with 10,000 examples each; SEED= repeats a run
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(JOBS) --hypothesis-seed=$(SEED) --hypothesis-show-statistics \
	  -o faulthandler_timeout=0 \
	  tests/test_properties_core.py tests/test_properties_adapters.py

soak: .venv/installed  ## 2,000 trainings in one process: memory must not grow
	OMP_WAIT_POLICY=passive PYTHONPATH=tests $(BIN)/python tests/soak.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed  ## list the benchmarks
	$(BIN)/python -m benchmarks --help

notebooks: .venv/installed  ## run the notebooks again and write their outputs; NAMES= for some of them
	OMP_WAIT_POLICY=passive $(BIN)/python notebooks/execute.py $(NAMES)

docs: .venv/installed  ## the documentation, in build/site
	$(BIN)/python -m mkdocs build --strict

docs-serve: .venv/installed  ## the documentation at http://127.0.0.1:8000, built again at every change
	$(BIN)/python -m mkdocs serve

test-wheel: .venv/installed  ## the built wheel, unpacked elsewhere, passes the tests of the package
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet --wheel
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel dist/*.whl
	cp -r tests pyproject.toml build/wheel/
	cd build/wheel && PYTHONPATH=. ../../$(BIN)/python -m pytest -q -n $(JOBS) -p no:cacheprovider \
	  ltr_objectives tests/test_queries.py tests/test_adapters.py tests/test_metrics.py tests/test_cli_compare.py

test-lowest:  ## the suite with the lowest supported versions; needs $(PYTHON_LOWEST)
	test -x .venv-lowest/bin/python || $(PYTHON_LOWEST) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable '.[dev]'
	.venv-lowest/bin/python -m pytest -n $(JOBS) --dist worksteal

.venv-serving/installed .venv-distributed/installed: .venv-%/installed: pyproject.toml
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet --editable '.[test-$*]'
	touch $@

test-serving: .venv-serving/installed  ## ONNX, Treelite, TL2cgen and MLflow give the libraries' scores; needs gcc
	OMP_WAIT_POLICY=passive .venv-serving/bin/python -m pytest tests/serving

test-distributed: .venv-distributed/installed  ## Ray Train and Spark on this machine; needs Java 17
	OMP_WAIT_POLICY=passive .venv-distributed/bin/python -m pytest tests/distributed

clean:
	rm -rf .venv .venv-lowest .venv-serving .venv-distributed build dist results *.egg-info
