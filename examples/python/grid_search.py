"""Search for the hidden layers and the learning rate of a classifier, in a pipeline. Needs scikit-learn."""

from graphrun import GraphClassifier
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

x, y = load_digits(return_X_y=True)
x, x_test, y, y_test = train_test_split(x, y, test_size=0.25, random_state=1, stratify=y)
pipeline = Pipeline([("pca", PCA(20, random_state=1)), ("net", GraphClassifier(epochs=20, random_state=1))])
search = GridSearchCV(pipeline, {"net__hidden": [(16,), (32, 32)], "net__learning_rate": [0.001, 0.01]}, cv=3)
search.fit(x, y)
print(f"best: {search.best_params_}, accuracy {search.best_score_:.3f}")
print(f"test: accuracy {search.score(x_test, y_test):.3f}")
