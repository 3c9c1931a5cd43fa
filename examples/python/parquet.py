"""A model file trained on a Parquet file instead of its CSV file. Needs pyarrow."""

import pathlib
import tempfile

import graphrun
import pyarrow.csv
import pyarrow.parquet

source = {"csv": "passengers.csv", "x": ["class", "sex", "age", "fare", "days(boarded)"], "y": "survived",
          "missing": {"age": "median"}}
model = graphrun.Model({
    "format": 1,
    "data": {"source": source, "split": [0.8, 0, 0.2], "stratify": "y",
             "transform": {"sex": ["one_hot"], "x": ["standardize"], "y": [{"classes": ["no", "yes"]}]}},
    "inputs": {"x": ["batch", 6], "y": ["batch", 1]},
    "graph": ["h = dense(x, units=16, activation=relu)", "logits = dense(h, units=1)",
              "loss = mean(sigmoid_cross_entropy(logits, y))"],
    "outputs": {"logits": "y"},
    "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"adam": {"lr": 0.01}}, "batch": 32,
              "shuffle": True, "epochs": 50, "seed": 1}})

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "passengers.parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(pathlib.Path(__file__).parents[1] / "tables/passengers.csv"), path)
    table = pyarrow.parquet.read_table(path)
model.fit(table)  # splits, dates, categories and missing values as in the model file
print(f"{table.num_rows} rows, accuracy on test rows: {model.evaluate('test')['metrics']['accuracy']:.3f}")
