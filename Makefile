# One command per habit. `make demo` and `make test` need Python 3.11, git and make; nothing else.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Processes that share the tests; each runs whole stretches of them, so that what a file sets up is set up once.
JOBS ?= 2
# What the package reads besides its code.
DATA_FILES = $(shell cd src/unfooled && find . -type f ! -name '*.py' ! -name '*.pyc' | sort)
PIP := $(BIN)/python -P -m pip --quiet
FITS_LOCK := import platform as p, sys; sys.exit((p.system(), p.machine(), p.python_implementation(), \
	sys.version_info[:2]) != ("Linux", "x86_64", "CPython", (3, 11)))

.PHONY: demo test slow hostile check format docs dist bench clean

# Train a small classifier on real reviews, attack it, print the table, write demo/report.
demo: $(STAMP)
	$(BIN)/unfooled demo --out demo

# Tests of real resources skip, with a reason, where these cannot be fetched.
test: $(STAMP)
	-$(BIN)/unfooled resources get all
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Also what takes more than about ten seconds each.
slow: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --runslow

# Every hostile file, answer and text, not just some of each; writes the table in docs/explanation/trust.md.
hostile: $(STAMP)
	HOSTILE=full $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/hostile --trust-table docs/explanation/trust.md

# What CI runs besides the tests.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation, into build/site; a warning is an error. Nothing is fetched.
docs: $(STAMP)
	$(BIN)/python docs/floor_plan.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Source and wheel, the wheel built from the source, installed into an empty environment and tried there.
dist:
	rm -rf dist build/dist
	$(PYTHON) -m venv build/dist/builder
	build/dist/builder/bin/python -P -m pip install --quiet "setuptools>=77"
	build/dist/builder/bin/python -c "from setuptools import build_meta; build_meta.build_sdist('dist')"
	build/dist/builder/bin/python -P -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	$(PYTHON) -m venv build/dist/empty
	build/dist/empty/bin/python -P -m pip install --quiet --constraint constraints.txt dist/*.whl
	build/dist/empty/bin/python -I tests/house/smoke_installed.py $(DATA_FILES)
	ls -l dist

# Side by side with TextAttack, in its own environment; writes bench/RESULTS.md. Takes about half an hour.
bench: $(STAMP)
	$(BIN)/python bench/run.py

# With checksums where the lock fits; it holds no wheels for other machines.
$(STAMP): pyproject.toml constraints.txt requirements.lock requirements-cpu.lock
	$(PYTHON) -m venv $(VENV)
	@set -e; \
	if $(BIN)/python -c '$(FITS_LOCK)'; then \
		echo "installing what requirements.lock lists, every file checked"; \
		$(PIP) install --require-hashes --no-deps --requirement requirements-cpu.lock || \
			echo "no index has the CPU build of torch: taking the one with GPU support"; \
		$(PIP) install --require-hashes --no-deps --requirement requirements.lock; \
		$(PIP) install --no-deps --no-build-isolation --editable .; \
		$(PIP) check || { \
			echo "torch needs more than the lock lists (GPU support): installing that without checksums"; \
			$(PIP) install --constraint constraints.txt --editable ".[dev]"; \
		}; \
	else \
		echo "requirements.lock is for Linux x86-64 and CPython 3.11: installing by constraints.txt, unchecked"; \
		$(PIP) install --upgrade "pip==26.3"; \
		$(PIP) install --constraint constraints.txt "torch==2.13.0"; \
		$(PIP) install --constraint constraints.txt --editable ".[dev]"; \
	fi
	touch $(STAMP)

clean:
	rm -rf $(VENV) .bench build demo dist .mypy_cache .ruff_cache .pytest_cache
