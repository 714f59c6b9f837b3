# The two commands a newcomer needs are `make demo` and `make test`; both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(shell find cpp -type f)
SOURCES := pyproject.toml CMakeLists.txt $(CPP)

# What pip may have to build is built in isolation; only our own build is not, so that it can go on
# where the last one stopped.
install = $(1)/bin/python tools/requirements.py $(2) > $(1)/requirements.txt && \
  $(1)/bin/python -m pip install -q -r $(1)/requirements.txt
build = $(1)/bin/python -m pip install -q --no-deps --no-build-isolation -e . \
  --config-settings=build-dir=build/$(2) --config-settings=cmake.define.$(3)

.PHONY: demo test quick check format sanitize fuzz stress docs package bench clean
.DEFAULT_GOAL := demo

$(VENV)/tools:
	@sh tools/check_machine.sh $(PYTHON)
	@echo "creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "installing the build tools ..."
	@$(call install,$(VENV),build)
	@touch $@

# Both are editable: changes of Python need no rebuild, changes of C++ one through these rules, in
# the same folder, so that the tests' build keeps what the demo's has compiled.
$(VENV)/demo: $(VENV)/tools $(SOURCES)
	@echo "installing NumPy, SciPy, scikit-learn, matplotlib and typer ..."
	@$(call install,$(VENV),cli plot)
	@echo "compiling the core for this machine ..."
	@$(call build,$(VENV),release,WIDEMARGIN_NATIVE=ON)
	@touch $@

$(VENV)/ready: $(VENV)/tools $(SOURCES)
	@echo "installing what the tests need ..."
	@$(call install,$(VENV),all test)
	@echo "compiling the core for every instruction set ..."
	@$(call build,$(VENV),release,WIDEMARGIN_NATIVE=OFF)
	@touch $(VENV)/demo $@

demo: $(VENV)/demo ## train on digits and on a larger problem, print a table, draw demo.png
	@echo "running widemargin demo ..."
	@$(BIN)/widemargin demo

# A file's tests stay together: some share a cluster of workers, or a model.
test: $(VENV)/ready ## all tests, doctests included
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(VENV)/ready ## tests but those marked slow: processes, kills, clusters, clocks
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

check: $(VENV)/ready ## linters and types
	$(call install,$(VENV),lint)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: $(VENV)/ready
	$(call install,$(VENV),lint)
	$(BIN)/ruff check --fix . && $(BIN)/ruff format . && $(BIN)/clang-format -i $(CPP)

# Own environment and build: the core under AddressSanitizer and UBSan, through the test suite.
# Python does not link the sanitisers' libraries, so they are preloaded (with libstdc++, whose
# exceptions they watch).
SANITIZED := .venv-sanitize
sanitize:
	test -d $(SANITIZED) || $(PYTHON) -m venv $(SANITIZED)
	$(call install,$(SANITIZED),build all test)
	$(call build,$(SANITIZED),sanitize,WIDEMARGIN_SANITIZE=ON)
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so.6)" \
	  ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(SANITIZED)/bin/python -m pytest tests -m "not memory" -o faulthandler_timeout=0

FUZZ := -max_total_time=600 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1
fuzz: $(VENV)/ready ## a million hostile files; ten minutes each on the text parser and the model loader
	$(BIN)/python -m fuzz.hostile --count 1000000 --seed $$(date +%s)
	$(call install,$(VENV),fuzz)
	mkdir -p build/corpus/svmlight build/corpus/model
	g++ -std=c++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	  fuzz/parser_sanitized.cpp -o build/parser_sanitized
	build/parser_sanitized 60 fuzz/seeds/svmlight/*
	$(BIN)/python fuzz/fuzz_svmlight.py $(FUZZ) -max_len=128 -dict=fuzz/svmlight.dict \
	  build/corpus/svmlight fuzz/seeds/svmlight
	$(BIN)/python fuzz/fuzz_model.py $(FUZZ) -max_len=64 -len_control=0 build/corpus/model

MINUTES ?= 5
stress: $(VENV)/ready ## random problems against every promise of the documents; MINUTES=60 before a release
	$(BIN)/python -m stress --minutes $(MINUTES)
	$(BIN)/python -m stress.exact --cases 2000 --seed $$$$

# Own environment, because the wheel's Python need not be that of $(VENV): one wheel for 3.12 and newer is
# built with any of them, as in make package PYTHON=python3.12; with 3.11 it is for 3.11 only.
PACKAGING := .venv-package
package: ## the sdist and a manylinux wheel, each installed and used in an environment of its own
	test -d $(PACKAGING) || $(PYTHON) -m venv $(PACKAGING)
	$(call install,$(PACKAGING),build package)
	rm -rf build/dist && mkdir -p build/dist
	$(PACKAGING)/bin/python -m pip wheel -q --no-deps --no-build-isolation -w build/dist/raw . \
	  --config-settings=build-dir=build/package --config-settings=cmake.define.WIDEMARGIN_NATIVE=OFF
	PATH="$(CURDIR)/$(PACKAGING)/bin:$$PATH" auditwheel repair -w build/dist build/dist/raw/*.whl
	rm -r build/dist/raw
	$(PACKAGING)/bin/python -c 'from scikit_build_core.build import build_sdist; build_sdist("build/dist")'
	sh tools/check_package.sh $(PACKAGING)/bin/python build/dist

# The site: own pages, API, gallery, benchmark pages and a model's report, then a look at all of them in a
# browser, which is skipped where there is none.
docs: $(VENV)/demo ## the site in build/site: guides, API, gallery, benchmark pages; warnings are errors
	$(call install,$(VENV),all docs)
	$(BIN)/python tools/site_source.py build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs build/docs build/site
	$(BIN)/python -m benchmarks.experiments --site build/site/experiments
	$(BIN)/python -m pytest tests/test_docs_site.py

bench: $(VENV)/ready ## every figure and every experiment, and their pages in build/site/experiments; needs WIDEMARGIN_DATA
	$(call install,$(VENV),bench)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.experiments all --site build/site/experiments

clean:
	rm -rf $(VENV) $(SANITIZED) $(PACKAGING) build
