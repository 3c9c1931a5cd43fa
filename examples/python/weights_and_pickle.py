"""Weights of rows, and a pickled classifier that predicts the same bits. Needs scikit-learn."""

import pickle

import numpy
from graphrun import GraphClassifier
from sklearn.datasets import make_classification

x, y = make_classification(1000, weights=[0.9], flip_y=0.1, random_state=1)  # a tenth of the rows is of class 1
plain = GraphClassifier(epochs=20, random_state=1).fit(x, y)
weighted = GraphClassifier(epochs=20, random_state=1).fit(x, y, sample_weight=numpy.where(y == 1, 9.0, 1.0))
for name, model in (("equal weights", plain), ("weights 1 and 9", weighted)):
    print(f"{name}: recall of class 1 is {(model.predict(x)[y == 1] == 1).mean():.2f}")

copy = pickle.loads(pickle.dumps(weighted))
print(f"same predictions after pickle: {(copy.predict_proba(x) == weighted.predict_proba(x)).all()}")
