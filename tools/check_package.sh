#!/bin/sh
# The wheel and the sdist as a stranger meets them: each installed into an environment of its own and
# used, the wheel with no compiler in reach.
# Usage: check_package.sh PYTHON FOLDER (of the wheel and the sdist)
set -eu
case $1 in */*) python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;; *) python=$1 ;; esac
folder=$(cd "$2" && pwd)
smoke=$(cd "$(dirname "$0")" && pwd)/smoke.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$smoke" "$work/smoke.py" # away from the clone

mkdir "$work/bare"
for program in env uname; do ln -s "$(command -v $program)" "$work/bare/$program"; done

use() { # use KIND FILE PATH: installed with that PATH, used outside the source tree with a bare one
  began=$(date +%s)
  "$python" -m venv "$work/$1"
  (PATH=$3 && "$work/$1/bin/python" -m pip install -q "$2[cli,tables]")
  installed=$(date +%s)
  (cd "$work" && PATH=$work/bare && "$work/$1/bin/python" smoke.py &&
    "$work/$1/bin/widemargin" --help > help.txt && echo "  widemargin --help works")
  echo "  installed in $((installed - began)) s, used in $(($(date +%s) - installed)) s"
}

echo "the sdist's files ..."
tar tzf "$folder"/*.tar.gz > "$work/files"
for file in LICENSE README.md CMakeLists.txt src/widemargin/py.typed tests/conftest.py docs/demo.png; do
  grep -q "/$file\$" "$work/files" || { echo "  $file is missing" >&2; exit 1; }
done
if grep -E '/(benchmarks/results|\.ci|\.github|\.venv|build)/' "$work/files"; then exit 1; fi

wheel=$(ls "$folder"/*.whl)
size=$(wc -c < "$wheel")
echo "the wheel $(basename "$wheel"), $((size / 1000)) kB ..."
[ "$size" -lt 4000000 ] || { echo "  it is larger than 4 MB" >&2; exit 1; }
(PATH=$work/bare && ! command -v c++ && ! command -v g++ && ! command -v cc) > "$work/compilers"
use wheel "$wheel" "$work/bare" # from nothing to a saved model of an own table, without a compiler
times > "$work/times"
echo "  of which the processor worked $(tail -1 "$work/times") (user, system)"
echo "the sdist, compiled by pip ..."
use sdist "$(ls "$folder"/*.tar.gz)" "$PATH"
