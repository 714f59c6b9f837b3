# The two commands a newcomer needs are `make demo` and `make test`; both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*)
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.18" ninja

.PHONY: demo test check format sanitize fuzz bench clean
.DEFAULT_GOAL := demo

$(VENV)/tools:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade "pip>=25.1"
	$(BIN)/pip install -q $(BUILD_TOOLS)
	touch $@

# Editable: Python changes need no rebuild, C++ changes one through this rule.
$(VENV)/ready: $(VENV)/tools $(SOURCES)
	$(BIN)/pip install -q --no-build-isolation -C build-dir=build/release -e ".[all]" --group test
	touch $@

demo: $(VENV)/ready ## train on the digits that ship with scikit-learn, print a table, draw demo.png
	$(BIN)/widemargin demo

test: $(VENV)/ready ## all tests, doctests included
	$(BIN)/python -m pytest

check: $(VENV)/ready ## linters and types
	$(BIN)/pip install -q --group lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror cpp/*

format: $(VENV)/ready
	$(BIN)/pip install -q --group lint
	$(BIN)/ruff check --fix . && $(BIN)/ruff format . && $(BIN)/clang-format -i cpp/*

# Own environment and build: the core under AddressSanitizer and UBSan, through the test suite.
# Python does not link the sanitisers' libraries, so they are preloaded (with libstdc++, whose
# exceptions they watch).
SANITIZED := .venv-sanitize
sanitize:
	test -d $(SANITIZED) || $(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/pip install -q --upgrade "pip>=25.1"
	$(SANITIZED)/bin/pip install -q $(BUILD_TOOLS)
	$(SANITIZED)/bin/pip install -q --no-build-isolation -C build-dir=build/sanitize \
	  -C cmake.define.WIDEMARGIN_SANITIZE=ON -e ".[all]" --group test
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so.6)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(SANITIZED)/bin/python -m pytest tests -o faulthandler_timeout=0

FUZZ := -max_total_time=600 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1
fuzz: $(VENV)/ready ## ten minutes each on the text parser and the model loader
	$(BIN)/pip install -q --group fuzz
	mkdir -p build/corpus/svmlight build/corpus/model
	g++ -std=c++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	  fuzz/parser_sanitized.cpp -o build/parser_sanitized
	build/parser_sanitized 60 fuzz/seeds/svmlight/*
	$(BIN)/python fuzz/fuzz_svmlight.py $(FUZZ) -max_len=128 -dict=fuzz/svmlight.dict \
	  build/corpus/svmlight fuzz/seeds/svmlight
	$(BIN)/python fuzz/fuzz_model.py $(FUZZ) -max_len=64 -len_control=0 build/corpus/model

bench: $(VENV)/ready ## every figure in benchmarks/results; needs WIDEMARGIN_DATA
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(SANITIZED) build
