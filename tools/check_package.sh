#!/bin/sh
# The wheel and the sdist as a user meets them: each installed into an environment of its own and
# used, the wheel with no compiler in reach.
# Usage: check_package.sh PYTHON FOLDER (of the wheel and the sdist)
set -eu
python=$1
folder=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/use.py" <<'END'
import numpy as np
from sklearn.datasets import load_digits

from widemargin import AdditiveSVC, KernelSVC, _core, load, save

X, y = load_digits(return_X_y=True)
for make in (AdditiveSVC, KernelSVC):
    model = make(random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.9
    save(model, "model.safetensors")
    loaded = load("model.safetensors")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
print("  fit, predict, save and load work on", _core.instruction_set())
END

mkdir "$work/bare"
for program in env uname; do ln -s "$(command -v $program)" "$work/bare/$program"; done

use() { # use KIND FILE PATH: installed with that PATH, used outside the source tree with a bare one
  "$python" -m venv "$work/$1"
  (PATH=$3 && "$work/$1/bin/python" -m pip install -q "$2[cli]")
  (cd "$work" && PATH=$work/bare && "$work/$1/bin/python" use.py &&
    "$work/$1/bin/widemargin" --help > help.txt && echo "  widemargin --help works")
}

echo "the sdist's files ..."
tar tzf "$folder"/*.tar.gz > "$work/files"
for file in LICENSE README.md CMakeLists.txt src/widemargin/py.typed tests/conftest.py docs/demo.png; do
  grep -q "/$file\$" "$work/files" || { echo "  $file is missing" >&2; exit 1; }
done
if grep -E '/(benchmarks/results|\.ci|\.venv|build)/' "$work/files"; then exit 1; fi
echo "the wheel, installed and used without a compiler ..."
(PATH=$work/bare && ! command -v c++ && ! command -v g++ && ! command -v cc) > "$work/compilers"
use wheel "$(ls "$folder"/*.whl)" "$work/bare"
echo "the sdist, compiled by pip ..."
use sdist "$(ls "$folder"/*.tar.gz)" "$PATH"
