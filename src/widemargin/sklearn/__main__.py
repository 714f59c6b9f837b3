"""Run a program with our classes under `sklearn.svm`: python -m widemargin.sklearn script.py."""

import runpy
import sys

from widemargin.sklearn import patch

USAGE = "usage: python -m widemargin.sklearn [-m MODULE | SCRIPT] [ARGUMENTS]"


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(USAGE if not arguments else print(USAGE))
    patch()
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
