# Needs python3 (3.10 to 3.13). Everything runs in .venv, which is made when it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
VENDOR_PYTHON ?= python3.12
VENDOR_ARCH ?= wormhole_b0
VENDOR_FOLDER ?= build/vendor/$(VENDOR_ARCH)
TILELANG_PYTHON ?= python3.11

.DEFAULT_GOAL := help
.PHONY: help check lint types test examples docs lessons pictures gallery site fuzz fuzz-kernels fuzz-python fuzz-cache fuzz-text fuzz-tilelang golden vendor mutants tilelang-diff clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1	\2/' | expand -t 18

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test,lint]'
	@touch $@

check: lint types test ## lint, types and all tests

lint: $(VENV)/.installed ## ruff
	$(BIN)/ruff check .

types: $(VENV)/.installed ## pyright, strict, over src
	$(BIN)/pyright --pythonpath $(BIN)/python src

test: $(VENV)/.installed ## all tests
	$(BIN)/python -m pytest -n 2

examples: $(VENV)/.installed ## run every example in the simulator
	@set -e; for example in examples/*.py; do echo "$$example"; $(BIN)/tilewright run "$$example"; done

docs: $(VENV)/.installed ## write the generated pages
	$(BIN)/python -m tilewright.report.errors_page docs/errors.md
	$(BIN)/python -m tilewright.report.ops_page docs/ops.md
	$(BIN)/python tests/specification/specification_page.py docs/specification.md
	$(BIN)/python tests/passes_page.py docs/passes.md
	$(BIN)/python tests/reference_pages.py docs
	$(BIN)/python tests/room_graph.py

lessons: $(VENV)/.installed ## write the outputs that README and lessons show anew
	$(BIN)/python tests/lessons/refresh.py README.md docs/learn/*.md

pictures: $(VENV)/.installed ## docs/images: the pictures of the page, taken anew
	$(BIN)/python tests/page_pictures.py

gallery: $(VENV)/.installed ## write docs/gallery: pages and pictures of the programs in examples/gallery
	$(BIN)/python tests/gallery_page.py docs/gallery

site: $(VENV)/.installed ## build/site: the documents as a site, opened in a browser page by page
	$(BIN)/pip install --quiet '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tests/site_check.py build/site

fuzz: $(VENV)/.installed ## random DST problems without end, every plan checked
	$(BIN)/python benchmarks/fuzz_dst.py

fuzz-kernels: $(VENV)/.installed ## random kernels without end, run and compared with NumPy
	$(BIN)/python benchmarks/fuzz_kernels.py --kernels 0

fuzz-python: $(VENV)/.installed ## kernels changed at random without end: a program, or an error with a place
	$(BIN)/python benchmarks/fuzz_python.py

fuzz-cache: $(VENV)/.installed ## what kernels read, changed without end, against uncached translations
	$(BIN)/python benchmarks/fuzz_cache.py

fuzz-tilelang: $(VENV)/.installed ## random TileLang kernels without end, against the same text run by NumPy
	$(BIN)/python -m pytest --hypothesis-profile explore -p no:xdist tests/property/test_tilelang_programs.py

golden: $(VENV)/.installed ## write tests/golden_cpp, the C++ of every example, anew
	$(BIN)/python tests/golden_files.py

fuzz-text: $(VENV)/.installed ## mutated IR text without end: a program, or an error with a code at a line
	$(BIN)/python benchmarks/fuzz_text.py

vendor: ## kernels against the headers of the ttnn in VENDOR_PYTHON's environment, see CONTRIBUTING.md
	$(VENDOR_PYTHON) tests/vendor/check_rows.py $(VENDOR_FOLDER) --arch $(VENDOR_ARCH)
	$(VENDOR_PYTHON) tests/vendor/check_kernels.py $(VENDOR_FOLDER) --arch $(VENDOR_ARCH)
	$(VENDOR_PYTHON) tests/vendor/check_kernels.py $(VENDOR_FOLDER) examples --arch $(VENDOR_ARCH) --api 2.0
	$(VENDOR_PYTHON) tests/vendor/check_tests.py $(VENDOR_FOLDER) --arch $(VENDOR_ARCH)
	$(VENDOR_PYTHON) tests/vendor/check_artifacts.py $(VENDOR_FOLDER) examples --arch $(VENDOR_ARCH)
	$(VENDOR_PYTHON) tests/vendor/check_examples.py $(VENDOR_FOLDER) --arch $(VENDOR_ARCH)

tilelang-diff: ## kernels through the tilelang in TILELANG_PYTHON's environment and through our reader, see CONTRIBUTING.md
	PYTHONPATH=src $(TILELANG_PYTHON) tests/tilelang_real/check_same_program.py

mutants: $(VENV)/.installed ## break emitted kernels everywhere, list what the native run does not notice
	$(BIN)/python benchmarks/mutants.py

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .ruff_cache .hypothesis
