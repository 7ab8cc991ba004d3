# The commands of a checkout. `make demo` and `make test` install and build whatever is missing first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON_BIN := .venv/bin/python
JOBS := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

# Sources by the tools that format them. ops.def and other tables are laid out by hand.
cxx_files = $(shell find include src tools python/src tests bench examples \
                    \( -name '*.h' -o -name '*.cpp' \) 2>/dev/null)
py_files = python scripts tests tools $(wildcard bench examples)

.PHONY: help setup build demo test bench accuracy wheel test-wheel test-cross format check-format check-layers clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | \
	  while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

# A stamp: set-up looks again only when what it installs from has changed.
.venv/.setup: scripts/setup.sh scripts/requirements.py pyproject.toml
	@scripts/setup.sh

.venv/.setup-%: .venv/.setup
	@scripts/setup.sh --$*

setup: ## install what is missing: system packages by apt-get, Python packages into .venv
	@scripts/setup.sh

# CMake runs by itself again when its files change.
build/build.ninja: | .venv/.setup
	@cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DPython_EXECUTABLE=$(CURDIR)/$(PYTHON_BIN)

build: .venv/.setup build/build.ninja ## build the library, picoc, the Python module and the C++ tests
	@ninja -C build

demo: build ## the main job: a*b+c on every live backend, timed and checked, with sources and a trace
	@.venv/bin/picokernel demo

test: build ## every test: GoogleTest and IR text tests through ctest, then pytest
	@ctest --test-dir build --output-on-failure -j $(JOBS)
	@$(PYTHON_BIN) -m pytest

bench: build .venv/.setup-bench ## measure against numba, numexpr and jax, a process each; then our own parts
	@cmake build -DPICOKERNEL_BENCH=ON >/dev/null && ninja -C build
	@.venv/bin/picokernel bench costs --peers
	@.venv/bin/picokernel bench elementwise all --peers
	@for program in build/bench/bin/*; do "$$program" || exit; done

accuracy: build ## the errors of mathematical functions that have changed, into docs/accuracy.md; all of them: an hour
	@$(PYTHON_BIN) tools/accuracy measure

wheel: .venv/.setup-wheel ## self-contained wheels into dist/, one for each CPython at hand
	@rm -f dist/*.whl
	@scripts/wheels.sh

test-wheel: ## install the wheels of dist/ into empty environments and run kernels there
	@python3 tests/wheel_test.py dist/*.whl

test-cross: .venv/.setup-cross ## by zig: the core for aarch64 Linux and macOS; the former's tests under qemu
	@scripts/cross.sh aarch64-linux-musl aarch64-macos

format: .venv/.setup ## lay out all sources
	@.venv/bin/clang-format -i $(cxx_files)
	@.venv/bin/ruff check --fix $(py_files)
	@.venv/bin/ruff format $(py_files)

check-format: .venv/.setup ## fail if `make format` would change something
	@.venv/bin/clang-format --dry-run -Werror $(cxx_files)
	@.venv/bin/ruff check $(py_files)
	@.venv/bin/ruff format --check $(py_files)

check-layers: .venv/.setup ## includes against the layers, and the limits on size
	@$(PYTHON_BIN) scripts/check_layers.py

clean: ## remove what was built; .venv stays
	rm -rf build build-* dist out python/picokernel/*.so
