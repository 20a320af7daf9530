# One command per habit. `make demo` and `make test` need Python 3.11, git and make; nothing else.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -P -m pip --quiet
FITS_LOCK := import platform as p, sys; sys.exit((p.system(), p.machine(), p.python_implementation(), \
	sys.version_info[:2]) != ("Linux", "x86_64", "CPython", (3, 11)))

.PHONY: demo test hostile check format bench clean

# Train a small classifier on real reviews, attack it, print the table, write demo/report.
demo: $(STAMP)
	$(BIN)/unfooled demo --out demo

# Tests of real resources skip, with a reason, where these cannot be fetched.
test: $(STAMP)
	-$(BIN)/unfooled resources get all
	$(BIN)/python -m pytest

# Every hostile file, answer and text, not just some of each; writes the table in docs/trust.md.
hostile: $(STAMP)
	HOSTILE=full $(BIN)/python -m pytest tests/hostile --trust-table docs/trust.md

# What CI runs besides the tests.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

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
	rm -rf $(VENV) .bench demo .mypy_cache .ruff_cache .pytest_cache
