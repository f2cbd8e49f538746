"""The command line: `python -m tilesmith`, and the script `tilesmith` that a wheel installs."""

import os
import sys

from . import find_program


def main():
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
