PYTHON ?= python3
PYTHON_LOWEST ?= python3.10
BIN := .venv/bin
JOBS ?= 2
CPU ?= $(if $(filter x86_64,$(shell uname -m)),x86-64-v3,generic)
EXTRAS ?= none xgboost xgboost-cpu lightgbm catboost dask letor cli parquet torch all
SEED ?= $(shell date +%Y%m%d)

.PHONY: demo test test-all lint mutants size bench notebooks docs docs-serve dist test-wheel test-extras test-site test-lowest test-serving test-distributed test-neural test-nightly soak audit clean

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m ltr_objectives.warmup
	touch $@

demo: .venv/installed  ## train the three libraries, their own objectives beside ours, on search data
	OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks demo

test: .venv/installed  ## the suite: each truth, in one case of each kind
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not release'

test-all: test-wheel test-extras test-site test-lowest test-neural test-serving test-distributed  ## all tests, before a release
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-nightly: .venv/installed  ## the property tests with 10,000 examples each; SEED= repeats a run
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(JOBS) --hypothesis-seed=$(SEED) --hypothesis-show-statistics \
	  -o faulthandler_timeout=0 \
	  tests/test_properties_core.py tests/test_properties_adapters.py

soak: .venv/installed  ## 2,000 trainings in one process: memory must not grow
	OMP_WAIT_POLICY=passive PYTHONPATH=tests $(BIN)/python tools/soak.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github

mutants: .venv/installed  ## break the package in a dozen places of each file and list what no test notices; FILES= for some of them
	OMP_WAIT_POLICY=passive $(BIN)/python tools/mutants.py $(FILES)

size:  ## lines and modules of the package by folder, of tests and benchmarks; words of the pages
	@for d in ltr_objectives ltr_objectives/[kmow]*/ ltr_objectives/workbench/cli adapters tests tests/*/ benchmarks; do \
	  find $$d -maxdepth 1 -name '*.py' | xargs cat | wc -l | xargs printf '%-28s %6d lines\n' $$d; done
	@echo "pages: $$(find docs -name '*.md' | wc -l), $$(find docs -name '*.md' | xargs cat | wc -w) words"

bench: .venv/installed  ## list the benchmarks
	$(BIN)/python -m benchmarks --help

notebooks: .venv/installed  ## run the notebooks again and write their outputs; NAMES= for some of them
	OMP_WAIT_POLICY=passive $(BIN)/python notebooks/execute.py $(NAMES)

docs: .venv/installed  ## the documentation, in build/site
	$(BIN)/python docs/pages.py --files
	$(BIN)/python docs/pages.py
	$(BIN)/zensical build --clean --strict

docs-serve: docs  ## the documentation at http://127.0.0.1:8000; run `make docs` after a change
	$(BIN)/zensical serve

test-site: docs  ## every page of the site in Chromium or Chrome, at the width of a phone; and its search
	$(BIN)/python tools/browser.py

dist: .venv/installed  ## source distribution, and wheel with machine code for $(CPU), in dist
	rm -rf dist
	NUMBA_CPU_NAME=$(CPU) NUMBA_CPU_FEATURES= $(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

test-wheel: .venv/installed  ## the built wheel, unpacked elsewhere: every module, training and the command line; the suite compares its files
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet --wheel
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel dist/*.whl
	cp -r tests pyproject.toml build/wheel/
	cd build/wheel && PYTHONPATH=. ../../$(BIN)/python -m pytest -q -n $(JOBS) -p no:cacheprovider \
	  ltr_objectives tests/test_callables.py tests/test_cli_compare.py

test-extras: dist  ## the wheel with each extra, in an environment of its own; EXTRAS= for some of them
	for extra in $(EXTRAS); do \
	  rm -rf build/extra && $(PYTHON) -m venv build/extra && \
	  build/extra/bin/python -m pip install --quiet "$$(echo dist/*.whl)$$(test $$extra = none || echo "[$$extra]")" && \
	  (cd build && extra/bin/python ../tools/extras.py $$extra) || exit 1; \
	done

test-lowest:  ## the suite with the lowest supported versions; needs $(PYTHON_LOWEST)
	test -x .venv-lowest/bin/python || $(PYTHON_LOWEST) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable '.[dev]'
	.venv-lowest/bin/python -m pytest -n $(JOBS) --dist worksteal

.venv-serving/installed .venv-distributed/installed .venv-neural/installed: .venv-%/installed: pyproject.toml
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet --editable '.[test-$*]'
	touch $@

test-serving: .venv-serving/installed  ## ONNX, Treelite, TL2cgen, CatBoost's code, MLflow and search engines give the libraries' scores; needs gcc and g++
	OMP_WAIT_POLICY=passive .venv-serving/bin/python -m pytest -o addopts='-ra --doctest-modules' tests/serving

test-distributed: .venv-distributed/installed  ## Ray Train, Spark and a Dask worker that dies, on this machine; needs Java 17
	OMP_WAIT_POLICY=passive .venv-distributed/bin/python -m pytest tests/distributed

test-neural: .venv-neural/installed  ## the losses for PyTorch and sentence-transformers
	.venv-neural/bin/python -m pytest -o addopts='-ra --doctest-modules' tests/neural adapters/_torch.py

audit:  ## known vulnerabilities of the lowest supported versions; asks the database of the Python Packaging Authority
	test -x build/audit/bin/python || $(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement tests/lowest.txt

clean:
	rm -rf .venv .venv-lowest .venv-serving .venv-distributed .venv-neural build dist results *.egg-info
