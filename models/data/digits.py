"""python3 models/data/digits.py DIGITS.CSV.GZ [FOLDER]: makes the two files of handwritten digits from scikit-learn's table.

DIGITS.CSV.GZ is sklearn/datasets/data/digits.csv.gz of an installed scikit-learn: 1797 lines of 64 pixels from 0 to 16
and the digit. Writes digits-images-idx3-ubyte.gz and digits-labels-idx1-ubyte.gz into FOLDER; without one it only says
whether those beside this script are the same images and labels. Exit code 1: they are not.
"""
import gzip
import io
import pathlib
import struct
import sys

ROWS, SIDE = 1797, 8
IMAGES, LABELS = "digits-images-idx3-ubyte.gz", "digits-labels-idx1-ubyte.gz"


def idx(sizes, values):
    """A file of unsigned bytes: 0, 0, type 8, the number of sizes, the sizes, the bytes."""
    return struct.pack(f">4B{len(sizes)}I", 0, 0, 8, len(sizes), *sizes) + bytes(values)


def files_of(table):
    rows = [[int(float(cell)) for cell in line.split(",")] for line in gzip.decompress(table).decode().split()]
    if len(rows) != ROWS or any(len(row) != SIDE * SIDE + 1 or max(row[:-1]) > 16 or row[-1] > 9 for row in rows):
        sys.exit("digits.py: this is not scikit-learn's table of digits")
    pixels = [pixel for row in rows for pixel in row[:-1]]
    return {IMAGES: idx((ROWS, SIDE, SIDE), pixels), LABELS: idx((ROWS,), [row[-1] for row in rows])}


def compressed(content):
    """Without a name and a time, so that the same content gives the same file (with the same zlib)."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as stream:
        stream.write(content)
    return out.getvalue()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parent
    different = 0
    for name, content in files_of(pathlib.Path(sys.argv[1]).read_bytes()).items():
        if len(sys.argv) == 3:
            (pathlib.Path(sys.argv[2]) / name).write_bytes(compressed(content))
            print(pathlib.Path(sys.argv[2]) / name)
            continue
        same = gzip.decompress((here / name).read_bytes()) == content
        different += not same
        print(name, "is the table's" if same else "is NOT the table's")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
