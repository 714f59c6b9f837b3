#!/bin/sh
# What a bare machine must have before anything is made: one sentence per thing that is missing.
# Usage: check_machine.sh PYTHON (the compiler is $CXX, or what CMake would find)
python=$1

fail() {
  echo "$1" >&2
  exit 1
}

command -v "$python" > /dev/null ||
  fail "There is no $python here: install Python 3.11 or newer, or name yours: make PYTHON=python3.12."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version 2>&1) is too old: install Python 3.11 or newer and name it: make PYTHON=python3.11."
"$python" -c 'import ensurepip, venv' 2> /dev/null ||
  fail "$python cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)."
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
  fail "$python comes without its C headers: install them (Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel)."

for compiler in ${CXX:-c++ g++ clang++}; do
  command -v "$compiler" > /dev/null && break
  compiler=
done
[ -n "$compiler" ] ||
  fail "There is no C++ compiler ${CXX:+called $CXX }here: install GCC 11 or Clang 12 or newer (Debian, Ubuntu: apt install g++)."
case $(uname -m) in x86_64 | amd64) march=-march=x86-64-v4 ;; *) march= ;; esac
echo '#include <string_view>' | "$compiler" -std=c++17 $march -x c++ -fsyntax-only - 2> /dev/null ||
  fail "$compiler is too old or lacks its standard library: install GCC 11 or Clang 12 or newer (Debian, Ubuntu: apt install g++)."
