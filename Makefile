# What a person types; CMake does the work. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build demo test onnx bench format lint headers asan tsan bare debian fuzz clean

sources  = $(shell git ls-files '*.cc' '*.h' '*.cu' '*.cuh')

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*##  */\1\t/p' $(MAKEFILE_LIST) | expand -t 10

build:  ## install what is missing, configure, compile
	tools/install-deps
	cmake --preset release
	cmake --build --preset release

demo:  ## compress a small network on Fashion-MNIST, minutes; then ask it about an image
	tools/install-deps --demo
	cmake --preset release
	cmake --build --preset release --target adjoin
	tools/demo

test: build  ## all tests
	tools/install-deps --test
	ctest --preset release

onnx: build  ## ONNX files of the published networks beside ONNX Runtime, minutes
	tools/install-deps --test
	ADJOIN_ALL_NETWORKS=1 OMP_WAIT_POLICY=passive build/release/tests/onnx_test

bench: build  ## speed of forward, training, adjoined steps, loading and images beside Python, interleaved
	tools/install-deps --bench
	cmake --build --preset release --target benches
	/usr/bin/python3 bench/forward.py --worker build/release/bench/bench_forward --rounds 25 --require 0.97
	/usr/bin/python3 bench/train.py --worker build/release/bench/bench_train --require 0.97
	/usr/bin/python3 bench/adjoined.py --worker build/release/bench/bench_adjoined
	/usr/bin/python3 bench/dan.py --worker build/release/bench/bench_dan
	/usr/bin/python3 bench/proxy.py --adjoin build/release/bin/adjoin
	/usr/bin/python3 bench/bayes.py --worker build/release/bench/bench_bayes --require 60 --require-wins 8
	/usr/bin/python3 bench/mixers.py --worker build/release/bench/bench_mixers
	/usr/bin/python3 bench/inspection.py --worker build/release/bench/bench_inspection --require 3
	/usr/bin/python3 bench/emd.py --adjoin build/release/bin/adjoin
	/usr/bin/python3 bench/load.py --build build/release --require
	/usr/bin/python3 bench/data.py --worker build/release/bench/bench_data --require 2.0

format:  ## clang-format every tracked source
	tools/install-deps --lint
	clang-format -i $(sources)

lint:  ## include order, format, clang-tidy over what knows no LibTorch
	tools/install-deps --lint
	cmake --preset lint
	tools/check_tree
	clang-format --dry-run -Werror $(sources)
	clang-tidy --quiet -p build/lint $$(tools/check_tree --torch-free)

headers:  ## every public header compiles on its own
	tools/install-deps
	cmake --preset release
	cmake --build --preset release --target all_verify_interface_header_sets

asan:  ## the unit tests under address and undefined behaviour sanitizers
	tools/install-deps
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

tsan:  ## the loader's threads under the thread sanitizer
	tools/install-deps
	cmake --preset tsan
	cmake --build --preset tsan
	ctest --preset tsan

bare:  ## all tests of a build without any optional part: no SQLite, ONNX, LEMON
	tools/install-deps --test
	cmake --preset bare
	cmake --build --preset bare
	ctest --preset bare

debian:  ## all tests on Debian 13 with its LibTorch 2.6, in build/debian-trixie; needs root and debootstrap
	tools/test-in-debian trixie

fuzz:  ## 20,000 mutated files per format under the sanitizers
	tools/install-deps
	cmake --preset asan
	cmake --build --preset asan --target adjoin_fuzz
	cd build/asan && UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 tests/fuzz/adjoin_fuzz --files 20000

clean:  ## remove build/
	rm -rf build
