"""Cross-validation of a regression on columns with names, strings and missing values. Needs scikit-learn and pandas."""

import pathlib

import pandas
from graphrun import GraphRegressor
from sklearn.model_selection import cross_val_score

table = pandas.read_csv(pathlib.Path(__file__).parents[1] / "tables/passengers.csv")
x, fare = table[["class", "sex", "age", "port"]], table["fare"]
print(f"missing: {int(x['age'].isna().sum())} ages, {int(x['port'].isna().sum())} ports")
scores = cross_val_score(GraphRegressor(hidden=(16,), epochs=100, random_state=1), x, fare, cv=5)
print(f"R2 of five folds: {scores.round(2)}")

model = GraphRegressor(hidden=(16,), epochs=100, random_state=1).fit(x, fare)
print(model.predict_frame(x.tail(3)))  # rows and column have the names of the table
