#!/usr/bin/env python3
"""Exported C and ONNX files of models with column transforms, against `graphrun predict` on the same CSV file.

    exported_columns.py GRAPHRUN

The table has numbers, categorical values, dates and missing values. C is compiled with cc; ONNX is evaluated where the
packages numpy and onnxruntime are installed.
Exit code: 0 all agree, 1 they do not, 77 there is no cc, or C agrees and the packages are missing.
"""

import csv
import datetime
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    onnxruntime, missing = None, error

CITIES = ["Oslo", "São Paulo", 'New "York"', "Rome"]
NUMBERS = ["area", "age", "rooms", "lake-distance"]
WORDS = ["city", "kind", "floor"]
DATES = ["sold", "built"]
failures = []


def write_table(path):
    random.seed(3)
    rows = []
    for i in range(300):
        area, age, city = random.uniform(20, 250), random.randint(0, 99), random.choice(CITIES)
        kind = random.choice(["flat", "house", "hut"]) if random.random() < 0.97 else f"rare{i}"
        year = random.randint(1955, 2023)
        sold = f"{year}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
        if random.random() < 0.2:
            sold += f"T{random.randint(0, 23):02}:{random.randint(0, 59):02}:15"
        built = f"{year - random.randint(1, 40)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
        price = area * 3000 * (1 + CITIES.index(city) / 3) * (1 - age / 300) * random.uniform(0.9, 1.1)
        rows.append({
            "area": f"{area:.2f}", "age": "" if random.random() < 0.1 else age,
            "city": "NA" if random.random() < 0.08 else city, "kind": kind, "rooms": random.randint(0, 3),
            "floor": random.choice([1, 2, 10]), "sold": sold, "built": built,
            "lake-distance": f"{random.lognormvariate(1, 1):.3f}", "price": f"{price:.2f}",
            "grade": "high" if price > 600000 else "mid" if price > 300000 else "low",
            "dear": "yes" if price > 400000 else "no"})
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def model(name, width, loss, kind, transform, threshold=None):
    x = ["area", "age", "city", "kind", "rooms", "floor", "days(sold) - days(built)", "month(sold)", "year(built)",
         "weekday(sold)", "day(sold)", "hour(sold)", "minute(sold)", "lake-distance", "sqrt(abs(area)) - mean(abs(area))"]
    return {
        "format": 1, "name": name,
        "data": {
            "source": {"csv": "houses.csv", "x": x, "y": name,
                       "missing": {"age": "median", "city": "most_frequent"}},
            "split": [0.8, 0.1, 0.1],
            "transform": {"age": ["standardize"], "city": ["one_hot"], "floor": ["classes"], "rooms": [{"one_hot": 4}],
                          "kind": [{"one_hot": {"categories": ["flat", "house", "hut"], "other": True}}],
                          "area": ["log", "standardize"], "month(sold)": ["minmax"],
                          "lake-distance": ["log1p", "robust"], "x": ["standardize"], "y": transform}},
        "inputs": {"x": ["batch", 24], "y": kind},
        "graph": ["h = dense(x, units=8, activation=tanh)", f"p = dense(h, units={width})", loss],
        "outputs": {"p": "y"},
        "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 16, "epochs": 20, "seed": 1,
                  **({"threshold": threshold} if threshold else {})}}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def seconds(text):
    moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds()


def number(text):
    return math.nan if text in ("", "NA") else float(text)


def table_in(source, name):
    """Returns the strings of a table of the C file."""
    found = re.search(rf"^const char \*const {name}\[\d+\] = {{\n(.*?)\n}};", source, re.M | re.S)
    return [bytes(one[1:-1], "ascii").decode("unicode_escape").encode("latin-1").decode()
            for one in found[1].strip().replace(",\n    ", "\n").split("\n")] if found else []


def c_value(row, column, words):
    if column in DATES:
        return repr(seconds(row[column]))
    if column in WORDS:
        if row[column] in ("", "NA"):
            return "-1"
        other = len(words) - 1 if words[-1] == "other" else len(words)
        return str(words.index(row[column]) if row[column] in words else other)
    value = number(row[column])
    return "NAN" if math.isnan(value) else repr(value)


def check_c(graphrun, folder, rows, width, flags):
    run(graphrun, "export-c", "w.safetensors", "-o", "net.c")
    with open("net.c", encoding="utf-8") as file:
        source = file.read()
    fields = re.search(r"^typedef struct {\n(.*?)} net_row;", source, re.M | re.S)[1]
    fields = [line.split()[1].rstrip(";") for line in fields.splitlines()]
    columns = {re.sub(r"\W", "_", column): column for column in NUMBERS + WORDS + DATES}
    values = ",\n".join("{" + ", ".join(c_value(row, columns[field], table_in(source, f"net_{field}"))
                                        for field in fields) + "}" for row in rows)
    labels = table_in(source, "net_y")
    with open("main.c", "w", encoding="utf-8") as file:
        file.write(f"""#include <math.h>
#include <stdio.h>
#define NET_DECLARATIONS
#include "net.c"
static const net_row rows[] = {{{values}}};
int main(void) {{
  static double arena[NET_ARENA_BYTES / 8 + 1];
  int i, k;
  for (i = 0; i < {len(rows)}; i++) {{
    float p[{width}];
    {'int32_t label;' if labels else ''}
    net_predict(arena, rows + i, p{', &label' if labels else ''});
    printf("%s", {'net_y[label]' if labels else '""'});
    for (k = 0; k < {width}; k++) printf(",%.9g", (double)p[k]);
    printf("\\n");
  }}
  return 0;
}}
""")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", *flags]
    run("cc", *strict, "main.c", "net.c", "-lm", "-o", "main")
    run("cc", *strict, "-DNET_SELF_TEST", f"-DNET_SELF_TEST_ULPS={1e6 if flags else 4}", "net.c", "-lm", "-o", "self")
    run(os.path.join(folder, "self"))
    got = [line.split(",") for line in run(os.path.join(folder, "main")).splitlines()]
    return [(one[0], [float(value) for value in one[1:]]) for one in got]


def check_onnx(graphrun, rows):
    run(graphrun, "export-onnx", "w.safetensors", "-o", "net.onnx")
    onnx.checker.check_model("net.onnx", full_check=True)
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    feeds = {}
    for one in session.get_inputs():
        values = [row[one.name] for row in rows]
        if one.name in WORDS:
            values = ["" if value == "NA" else value for value in values]
            feeds[one.name] = numpy.array(values, dtype=object).reshape(-1, 1)
        else:
            convert = seconds if one.name in DATES else number
            feeds[one.name] = numpy.array([convert(value) for value in values]).reshape(-1, 1)
    outputs = dict(zip((one.name for one in session.get_outputs()), session.run(None, feeds)))
    labels = outputs.get("y", [""] * len(rows))
    return [(label, list(map(float, p))) for label, p in zip(labels, outputs["p"])]


def compare(name, got, wanted, tolerance):
    size = max(1.0, max(abs(value) for _, values in wanted for value in values))
    worst = max(abs(a - b) / size for (_, g), (_, w) in zip(got, wanted) for a, b in zip(g, w))
    wrong = sum(g[0] != w[0] for g, w in zip(got, wanted))
    print(f"{name}: {len(got)} rows, within {worst:.2g} of the outputs' size, {wrong} other labels")
    if len(got) != len(wanted) or not worst <= tolerance or wrong:
        failures.append(name)


def main(graphrun):
    if shutil.which("cc") is None:
        print("skipped: there is no C compiler cc")
        return 77
    graphrun = os.path.abspath(graphrun)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    write_table("houses.csv")
    with open("houses.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cases = [("price", 1, "loss = mse(p, y)", ["batch", 1], ["log", "standardize"], None),
             ("grade", 3, "loss = mean(softmax_cross_entropy(p, y))", ["batch", 3], ["one_hot"], None),
             ("dear", 1, "loss = mean(sigmoid_cross_entropy(p, y))", ["batch", 1], ["classes"], None),
             ("dear", 1, "loss = mean(sigmoid_cross_entropy(p, y))", ["batch", 1], ["classes"], {"by": "f1"})]
    for target, width, *rest in cases:
        with open("model.json", "w", encoding="utf-8") as file:
            json.dump(model(target, width, *rest), file)
        run(graphrun, "train", "model.json", "--quiet", "--save-weights", "w.safetensors")
        predicted = csv.DictReader(run(graphrun, "predict", "w.safetensors", "houses.csv").splitlines())
        wanted = [(row.get("y", ""), [float(value) for key, value in row.items() if key == "p" or key.startswith("p.")])
                  for row in predicted]
        name = target + (" with a threshold" if rest[-1] else "")
        compare(f"{name}, C", check_c(graphrun, folder, rows, width, []), wanted, 1e-6)
        compare(f"{name}, C in float", check_c(graphrun, folder, rows, width, ["-DNET_FLOAT"]), wanted, 1e-5)
        if onnxruntime is not None:
            compare(f"{name}, ONNX", check_onnx(graphrun, rows), wanted, 1e-5)
    shutil.rmtree(folder)
    if failures:
        print("they differ: " + ", ".join(failures))
        return 1
    if onnxruntime is None:
        print(f"ONNX was not evaluated: {missing}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
