"""Least-squares fit of the line a + b * x with relative errors instead of absolute ones.

>>> [round(number, 9) for number in fit([(1, 5), (2, 7), (10, 23)])]
[3.0, 2.0]
>>> a, b = fit([(1, 1), (1000, 900), (1000, 1100)])
>>> [round(share, 3) for share in residuals([(1, 1), (1000, 900), (1000, 1100)], a, b)]
[0.0, 0.089, -0.109]
"""


def fit(points):
    """Returns a and b that minimise the sum of ((a + b * x - y) / y) ** 2."""
    ones = sum(1 / y**2 for _, y in points)
    first = sum(x / y**2 for x, y in points)
    second = sum(x**2 / y**2 for x, y in points)
    a_side = sum(1 / y for _, y in points)
    b_side = sum(x / y for x, y in points)
    determinant = ones * second - first**2
    return (a_side * second - b_side * first) / determinant, (ones * b_side - first * a_side) / determinant


def residuals(points, a, b):
    """Returns the relative residual of the line at each point."""
    return [(a + b * x - y) / y for x, y in points]


if __name__ == "__main__":
    import doctest
    import sys

    sys.exit(1 if doctest.testmod().failed else 0)
