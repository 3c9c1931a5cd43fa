import graphrun

graph = graphrun.GraphBuilder()
x, y = graph.input("x", 2), graph.input("y", 1)
y_hat = graph.dense("y_hat", graph.dense("h", x, 4, activation="tanh"), 1)
graph.loss = ((y_hat - y) ** 2).mean()
model = graph.model(outputs={"y_hat": "y"}, optimizer={"sgd": {"lr": 0.1}}, epochs=2000, seed=1)
model.fit([[0, 0], [0, 1], [1, 0], [1, 1]], [[0], [1], [1], [0]])
print(model.predict([[0, 0], [0, 1], [1, 0], [1, 1]]))
