"""How far outputs are from those of the first file. usage: outputs_apart.py largest|norm FIRST.npz OTHER.npz...

Prints a number for each other file. largest: of the first output, the largest difference over the largest value; norm: the
worst output's root of the sum of squares of the differences over that of the values. "inf" where sizes differ or values are
not finite. An output that the other does not have by name is its first one."""

import sys

import numpy


def apart(measure, exact, found):
    if found.size != exact.size or not numpy.isfinite(found).all():
        return "inf"
    exact, found = exact.astype(float), found.reshape(exact.shape).astype(float)
    if measure == "largest":
        return abs(exact - found).max() / max(abs(exact).max(), 1e-30)
    return numpy.sqrt(((found - exact) ** 2).sum() / max((exact**2).sum(), 1e-300))


def main():
    measure = sys.argv[1]
    first, *others = (dict(numpy.load(path)) for path in sys.argv[2:])
    for other in others:
        names = list(first) if measure == "norm" else list(first)[:1]
        print(max((apart(measure, first[name], other.get(name, next(iter(other.values())))) for name in names), key=float))


if __name__ == "__main__":
    main()
