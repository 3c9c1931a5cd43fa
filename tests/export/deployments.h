// deployments.h: models to export: those of models/ with random weights, and one with every op that is exported.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graphrun/deployment.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {

inline Session on_ref(Model model) {
  SessionOptions options;
  options.executor = "ref";
  options.fuse = false;
  return Session(std::move(model), options);
}

// Models on MNIST have no data here, and need none: their transforms are fixed.
inline Session model_session(const std::string& name) {
  const std::string path = source_folder() + "/models/" + name + ".json";
  LoadOptions load;
  if (name.starts_with("mnist")) load.predicts = 1;
  if (name == "stock") load.overrides = {{"data.source.random.rows", "1000"}, {"train.batch", "100"}};
  return on_ref(load_model(path, load));
}

inline std::vector<std::string> model_names_to_export() {
  return {"digits",    "digits_cnn", "linear_regression", "logistic_regression", "mnist_lenet", "mnist_logreg",
          "mnist_mlp", "peaks",      "realestate_mlp",    "realestate_mlp2",     "stock",       "xor"};
}

// `graph` are formulas over x (batch, 4, 3), k (batch) of class numbers and parameters E (5, 3), W (3, 2), s (4, 1).
inline std::string formulas_model(const std::string& graph, const std::string& outputs) {
  return R"j({"format": 1, "name": "odd names", "data": {"train": {"npz": "none.npz"}},
  "inputs": {"x": ["batch", 4, 3], "k": {"shape": ["batch"], "dtype": "i32"}},
  "parameters": {"E": {"shape": [5, 3], "init": {"normal": 1}}, "W": {"shape": [3, 2], "init": {"normal": 1}},
                 "s": {"shape": [4, 1], "init": {"normal": 1}}},
  "graph": [)j" +
         graph + R"j(, "loss = mean(square(x)) + mean(square(W)) + mean(square(s)) + mean(square(E))"],
  "outputs": [)j" +
         outputs + R"j(], "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 4}})j";
}

inline Session formulas_session(const std::string& graph, const std::string& outputs) {
  LoadOptions load;
  load.predicts = 1;
  return on_ref(load_model(write_model(formulas_model(graph, outputs)), load));
}

// Every layer, trained for a while, so that running statistics are none that they begin with.
inline Session layers_session() {
  Session session = on_ref(load_model(write_model(R"j({"format": 1, "name": "layers",
  "data": {"train": {"inline": {"x": [[1, 2, 3], [4, -1, 0.5], [-2, 0.1, 7], [0, 3, -5]], "k": [2, 0, 1, 2]}}},
  "inputs": {"x": ["batch", 3], "k": {"shape": ["batch"], "dtype": "i32"}},
  "graph": ["a = dense(concat(embedding(k, entries=3, units=4, name=words), x), units=6)", "b = batch_norm(a)",
            "c = rms_norm(relu(layer_norm(b, name=l)))", "r = lstm(reshape(x, shape=[-1, 3, 1]), units=4, return=sequence)",
            "q = gru(r, units=3, reverse=true)", "v = rnn(r, units=2)",
            "p1 = dense(concat(batch_norm(c, scale=false, name=last), q, v), units=2)",
            "s = conv1d(reshape(x, shape=[-1, 3, 1]), filters=4, size=2, padding=same, activation=tanh)",
            "t = conv_transpose1d(s, filters=2, size=3, stride=2, padding=same)",
            "p = p1 + dense(flatten(max_pool(t, size=3, stride=2)), units=2, name=pooled)",
            "loss = mean(square(p - slice(x, stop=2)))"],
  "outputs": ["p"], "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.1}}, "batch": 2, "epochs": 9}})j")));
  session.train();
  return session;
}

// Every op that both languages have.
inline Session odd_session() {
  return formulas_session(
      R"j("g = gather(E, k)", "t = transpose(x, axes=[0, 2, 1])", "z = x @ W * s", "f = reshape(z, shape=[-1, 8])",
  "m = max(x, axis=[1, 2])", "lo = min(x, axis=2, keepdims=true)", "product = prod(x, axis=1)", "q = softmax(f)",
  "lq = log_softmax(transpose(z, axes=[0, 2, 1]))", "r = concat(q, g, axis=1)", "double = mean(x, axis=1)",
  "o = slice(r, axis=1, start=2, stop=9) * 2", "a = argmax(q, axis=1)", "b = argmin(x, axis=1)",
  "w = transpose(t @ z, axes=[0, 2, 1])", "h = one_hot(k, classes=5)", "p = pad(q, axis=1, before=1, after=2)",
  "u = sum(where(x > 0.5, gelu(x), leaky_relu(x)), axis=[2])",
  "d = logsumexp(x, axis=2)",
  "l1 = clip(silu(elu(softplus(selu(x)))), low=0.1, high=2.0) - erf(x) + mod(x, 0.7) + pow(abs(x), 1.5)",
  "l2 = sin(x) * cos(x) / tan(x) + sqrt(exp(x)) - rsqrt(square(x) + 1) + log(1 + square(x)) + log1p(abs(x)) + expm1(x)",
  "l3 = floor(x) + ceil(x) * round(x) + sign(x) + minimum(x, 0.3) + maximum(x, -0.2) + reciprocal(x + 10) + gelu_tanh(x) + relu(-x) + tanh(x) * sigmoid(x)",
  "y0 = where((x >= 0 and x < 1) or not (x <= 2) or x != x, x, s)", "i0 = x + s")j",
      R"j("g", "t", "m", "lo", "product", "q", "lq", "o", "double", "a", "b", "w", "h", "p", "u", "d", "l1", "l2", "l3",
  "y0", "i0")j");
}

}  // namespace graphrun::test
