"""The command line: `python -m tilesmith`, and the script `tilesmith` that a wheel installs."""

import os
import sys

from . import _find_xgboost, find_program


def main():
    program = find_program()
    xgboost = _find_xgboost()
    if xgboost:  # where the system has no other
        paths = [os.environ.get("LD_LIBRARY_PATH"), os.path.dirname(xgboost)]
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, paths))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
