PYTHON ?= python3
PYTHON_LOWEST ?= python3.11
BIN := .venv/bin
JOBS ?= 2
CPU ?= $(if $(filter x86_64,$(shell uname -m)),x86-64-v3,generic)
EXTRAS ?= none xgboost xgboost-cpu lightgbm catboost dask letor cli parquet torch all
PARTS ?= wheel extras site lowest newest serving distributed neural audit
LIBRARIES := numpy numba scipy pandas scikit-learn xgboost lightgbm catboost

.PHONY: demo test test-all lint docs dist bench release-check clean size $(PARTS:%=check-%)

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	$(BIN)/python -m ltr_objectives.warmup
	touch $@

demo:  ## goals with a bound, clicks and seconds in the three libraries, beside what they have
	test -x .venv-demo/bin/python || $(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --quiet --upgrade pip
	.venv-demo/bin/python -m pip install --quiet --no-compile --editable . --group demo  # bytecode of what is imported alone
	OMP_WAIT_POLICY=passive .venv-demo/bin/python -m benchmarks demo

test: .venv/installed  ## the suite: each truth, in one case of each kind
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not release'

test-all: .venv/installed  ## the suite with full grids, pages and notebooks
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github

docs: .venv/installed  ## the documentation, in build/site
	$(BIN)/python docs/pages.py
	$(BIN)/zensical build --clean --strict

dist:  ## source distribution, and wheel with machine code for $(CPU), in dist
	test -x .venv-dist/bin/python || $(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet build twine
	rm -rf dist
	NUMBA_CPU_NAME=$(CPU) NUMBA_CPU_FEATURES= .venv-dist/bin/python -m build --quiet
	.venv-dist/bin/twine check --strict dist/*

bench: .venv/installed  ## list the benchmarks
	$(BIN)/python -m benchmarks --help

size:  ## lines by folder, words of the pages
	@for d in ltr_objectives ltr_objectives/[kmow]*/ ltr_objectives/workbench/cli adapters tests tests/*/ benchmarks; do \
	  find $$d -maxdepth 1 -name '*.py' | xargs cat | wc -l | xargs printf '%-28s %6d lines\n' $$d; done
	@echo "pages: $$(find docs -name '*.md' | wc -l), $$(find docs -name '*.md' | xargs cat | wc -w) words"

release-check: $(PARTS:%=check-%)  ## what `make test-all` cannot try in one environment; PARTS= for some of it

check-wheel: .venv/installed  # the built wheel, unpacked elsewhere: every module, training and the command line
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet --wheel
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel dist/*.whl
	cp -r tests pyproject.toml build/wheel/
	cd build/wheel && PYTHONPATH=. ../../$(BIN)/python -m pytest -q -n $(JOBS) -p no:cacheprovider \
	  ltr_objectives tests/test_callables.py tests/test_cli_compare.py

check-extras: dist  # the wheel with each extra, in an environment of its own; EXTRAS= for some of them
	for extra in $(EXTRAS); do \
	  rm -rf build/extra && $(PYTHON) -m venv build/extra && \
	  build/extra/bin/python -m pip install --quiet "$$(echo dist/*.whl)$$(test $$extra = none || echo "[$$extra]")" && \
	  (cd build && extra/bin/python ../tools/extras.py $$extra) || exit 1; \
	done

check-site: docs  # every page in Chromium or Chrome, at the width of a phone; and the search
	$(BIN)/python tools/browser.py

check-lowest:  # the suite with the lowest supported versions; needs $(PYTHON_LOWEST)
	test -x .venv-lowest/bin/python || $(PYTHON_LOWEST) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable . --group dev
	.venv-lowest/bin/python -m pytest -n $(JOBS) --dist worksteal

check-newest:  # the suite with the newest versions of the libraries; PRE=--pre for pre-releases
	test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade pip
	.venv-newest/bin/python -m pip install --quiet --editable . --group dev
	.venv-newest/bin/python -m pip install --quiet --upgrade $(PRE) $(LIBRARIES)
	.venv-newest/bin/python -m pip freeze | grep -iE "^($$(echo $(LIBRARIES) | tr ' ' '|'))=="
	.venv-newest/bin/python -m pytest -n $(JOBS) --dist worksteal

# other programs that read models (gcc, g++); Ray, Spark and a Dask worker that dies (Java 17); PyTorch
check-serving check-distributed check-neural: check-%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet --editable . --group test-$*
	OMP_WAIT_POLICY=passive .venv-$*/bin/python -m pytest -o addopts='-ra --doctest-modules' tests/$* \
	  $(if $(filter neural,$*),adapters/_torch.py)

check-audit:  # known vulnerabilities of the lowest supported versions, from the Python Packaging Authority
	test -x build/audit/bin/python || $(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement tests/lowest.txt

clean:
	rm -rf .venv .venv-* build dist *.egg-info
