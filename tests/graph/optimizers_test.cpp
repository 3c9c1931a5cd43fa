// Optimizers: 20 steps of a small network on ref and cpu against the equations of PyTorch's documentation in double,
// and against torch itself where it is installed (reference/optimizers_torch.py has the same network and the same
// cases).
#include "graph/frontend/library/optimizers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>

#include "base/file.h"
#include "base/json.h"
#include "graphrun/session.h"
#include "support/source_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using Reals = std::vector<double>;
using Parameters = std::map<std::string, Reals>;  // row-major

constexpr std::size_t kTrainingRows = 8, kInputs = 3, kHidden = 4, kOutputs = 2, kSteps = 20;
constexpr double kTolerance = 1e-5;

// ---- what is trained, and how

struct OptimizerCase {
  std::string name;
  std::string optimizer;
  std::map<std::string, double> options;  // of the optimizer, in our names
  double clip_norm = 0;
  bool biases_decay = true;
  bool in_torch = true;  // false: torch.optim has no such optimizer, and the equations alone are compared with
  double clip_value = 0;

  double option(const std::string& key, double fallback) const {
    const auto entry = options.find(key);
    return entry == options.end() ? fallback : entry->second;
  }
};
std::ostream& operator<<(std::ostream& stream, const OptimizerCase& c) {
  return stream << c.name;
}

const std::vector<OptimizerCase>& cases() {
  static const std::vector<OptimizerCase> list = {
      {"sgd", "sgd", {{"lr", 0.1}}},
      {"sgd_weight_decay", "sgd", {{"lr", 0.1}, {"weight_decay", 0.2}}},
      {"sgd_l2", "sgd", {{"lr", 0.1}, {"l2", 0.4}}},
      {"sgd_clip_norm", "sgd", {{"lr", 0.5}}, 0.25},
      {"sgd_clip_value", "sgd", {{"lr", 0.5}}, 0, true, true, 0.02},
      {"sgd_clip_value_and_norm", "sgd", {{"lr", 0.5}}, 0.25, true, true, 0.1},
      {"momentum", "momentum", {{"lr", 0.05}}},
      {"momentum_half", "momentum", {{"lr", 0.1}, {"momentum", 0.5}}},
      {"nesterov", "nesterov", {{"lr", 0.05}}},
      {"rmsprop", "rmsprop", {{"lr", 0.002}}},
      {"rmsprop_alpha", "rmsprop", {{"lr", 0.01}, {"alpha", 0.8}, {"eps", 1e-3}}},
      {"adagrad", "adagrad", {{"lr", 0.05}}},
      {"adam", "adam", {{"lr", 0.01}}},
      {"adam_betas", "adam", {{"lr", 0.05}, {"beta1", 0.8}, {"beta2", 0.95}, {"eps", 1e-4}}},
      {"adam_l2", "adam", {{"lr", 0.01}, {"l2", 0.1}}},
      {"adamw", "adamw", {{"lr", 0.01}}},
      {"adamw_all", "adamw", {{"lr", 0.02}, {"beta2", 0.99}, {"weight_decay", 0.5}}, 0.25, false},
      {"sgd_weights_only", "sgd", {{"lr", 0.1}, {"l2", 0.3}}, 0.25, false},
      {"rprop", "rprop", {{"lr", 0.01}}},
      {"rprop_keys",
       "rprop",
       {{"lr", 0.02}, {"eta_minus", 0.25}, {"eta_plus", 1.5}, {"step_min", 0.004}, {"step_max", 0.06}}},
      {"bfgs", "bfgs", {}, 0, true, false},
      {"levenberg_marquardt", "levenberg_marquardt", {{"damping", 0.1}, {"min_damping", 0.03}}, 0, true, false},
      {"levenberg_marquardt_l2",
       "levenberg_marquardt",
       {{"damping", 0.5}, {"min_damping", 1}, {"l2", 0.1}},
       0,
       false,
       false},
  };
  return list;
}

// Element (i, j) is ((a i + b j) mod modulus - floor(modulus / 2)) / divisor: exact in every format.
Reals pattern(std::size_t rows, std::size_t columns, std::size_t a, std::size_t b, int modulus, double divisor) {
  Reals values;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      values.push_back((static_cast<int>(a * i + b * j) % modulus - modulus / 2) / divisor);
    }
  }
  return values;
}
Reals data_x() {
  return pattern(kTrainingRows, kInputs, 7, 3, 11, 4);
}
Reals data_y() {
  return pattern(kTrainingRows, kOutputs, 5, 4, 9, 4);
}
Parameters start_values() {
  return {{"W1", pattern(kInputs, kHidden, 5, 7, 17, 16)},
          {"b1", pattern(1, kHidden, 0, 3, 7, 32)},
          {"W2", pattern(kHidden, kOutputs, 3, 5, 13, 16)},
          {"b2", pattern(1, kOutputs, 0, 2, 5, 8)}};
}
const std::map<std::string, Shape> kShapes = {
    {"W1", {kInputs, kHidden}}, {"b1", {kHidden}}, {"W2", {kHidden, kOutputs}}, {"b2", {kOutputs}}};
bool is_bias(const std::string& parameter) {
  return parameter[0] == 'b';
}

// ---- the equations in double

// Gradients of mean((tanh(x W1 + b1) W2 + b2 - y)^2).
Parameters gradients_of(const Parameters& p) {
  const Reals x = data_x(), y = data_y();
  const Reals &w1 = p.at("W1"), &b1 = p.at("b1"), &w2 = p.at("W2"), &b2 = p.at("b2");
  Parameters g;
  for (const auto& [name, values] : p) g[name].assign(values.size(), 0.0);
  for (std::size_t row = 0; row < kTrainingRows; ++row) {
    std::array<double, kHidden> hidden{}, d_hidden{};
    for (std::size_t h = 0; h < kHidden; ++h) {
      double z = b1[h];
      for (std::size_t i = 0; i < kInputs; ++i) z += x[row * kInputs + i] * w1[i * kHidden + h];
      hidden[h] = std::tanh(z);
    }
    for (std::size_t o = 0; o < kOutputs; ++o) {
      double prediction = b2[o];
      for (std::size_t h = 0; h < kHidden; ++h) prediction += hidden[h] * w2[h * kOutputs + o];
      const double d = 2 * (prediction - y[row * kOutputs + o]) / static_cast<double>(kTrainingRows * kOutputs);
      g["b2"][o] += d;
      for (std::size_t h = 0; h < kHidden; ++h) {
        g["W2"][h * kOutputs + o] += d * hidden[h];
        d_hidden[h] += d * w2[h * kOutputs + o];
      }
    }
    for (std::size_t h = 0; h < kHidden; ++h) {
      const double d = d_hidden[h] * (1 - hidden[h] * hidden[h]);
      g["b1"][h] += d;
      for (std::size_t i = 0; i < kInputs; ++i) g["W1"][i * kHidden + h] += d * x[row * kInputs + i];
    }
  }
  return g;
}

void clip(Parameters& gradients, double max_norm, double max_value) {
  for (auto& [name, values] : gradients) {
    for (double& g : values) g = max_value > 0 ? std::fmin(std::fmax(g, -max_value), max_value) : g;
  }
  if (max_norm == 0) return;
  double squares = 0;
  for (const auto& [name, values] : gradients) {
    for (const double g : values) squares += g * g;
  }
  const double factor = std::fmin(1, max_norm / (std::sqrt(squares) + 1e-6));
  for (auto& [name, values] : gradients) {
    for (double& g : values) g *= factor;
  }
}

// One element's step number t, from 1; `m` and `v` are its slots. Names as in the documentation of torch.optim.
void update(const OptimizerCase& c, bool decays, int t, double& theta, double g, double& m, double& v) {
  const double lr = c.option("lr", 0);
  const bool adamw = c.optimizer == "adamw";
  if (decays) {
    g += c.option("l2", 0) * theta;
    theta -= lr * c.option("weight_decay", adamw ? 0.01 : 0) * theta;
  }
  if (c.optimizer == "sgd") {
    theta -= lr * g;
  } else if (c.optimizer == "momentum" || c.optimizer == "nesterov") {
    const double mu = c.option("momentum", 0.9);
    m = t == 1 ? g : mu * m + g;
    theta -= lr * (c.optimizer == "nesterov" ? g + mu * m : m);
  } else if (c.optimizer == "rmsprop") {
    const double alpha = c.option("alpha", 0.99);
    v = alpha * v + (1 - alpha) * g * g;
    theta -= lr * g / (std::sqrt(v) + c.option("eps", 1e-8));
  } else if (c.optimizer == "adagrad") {
    v += g * g;
    theta -= lr * g / (std::sqrt(v) + c.option("eps", 1e-10));
  } else if (c.optimizer == "rprop") {  // m: the previous gradient, v: the step size
    if (t == 1) v = lr;
    const bool turns = g * m < 0;
    v *= turns ? c.option("eta_minus", 0.5) : g * m > 0 ? c.option("eta_plus", 1.2) : 1;
    v = std::fmin(std::fmax(v, c.option("step_min", 1e-6)), c.option("step_max", 50));
    m = turns ? 0 : g;
    theta -= m > 0 ? v : m < 0 ? -v : 0;
  } else {
    ASSERT_TRUE(adamw || c.optimizer == "adam") << "no equations for " << c.optimizer;
    const double beta1 = c.option("beta1", 0.9), beta2 = c.option("beta2", 0.999);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    theta -= lr * m_hat / (std::sqrt(v_hat) + c.option("eps", 1e-8));
  }
}

Reals residuals_of(const Parameters& p);
double loss_of(const Parameters& p) {
  double sum = 0;
  for (const double residual : residuals_of(p)) sum += residual * residual;
  return sum / static_cast<double>(kTrainingRows * kOutputs);
}
Reals residuals_of(const Parameters& p) {
  const Reals x = data_x(), y = data_y();
  const Reals &w1 = p.at("W1"), &b1 = p.at("b1"), &w2 = p.at("W2"), &b2 = p.at("b2");
  Reals residuals;
  for (std::size_t row = 0; row < kTrainingRows; ++row) {
    Reals hidden = b1;
    for (std::size_t h = 0; h < kHidden; ++h) {
      for (std::size_t i = 0; i < kInputs; ++i) hidden[h] += x[row * kInputs + i] * w1[i * kHidden + h];
    }
    for (std::size_t o = 0; o < kOutputs; ++o) {
      double prediction = b2[o];
      for (std::size_t h = 0; h < kHidden; ++h) prediction += std::tanh(hidden[h]) * w2[h * kOutputs + o];
      residuals.push_back(prediction - y[row * kOutputs + o]);
    }
  }
  return residuals;
}

Reals flat(const Parameters& p) {
  Reals all;
  for (const auto& [name, values] : p) all.insert(all.end(), values.begin(), values.end());
  return all;
}
Parameters split(const Reals& all) {
  Parameters p = start_values();
  auto next = all.begin();
  for (auto& [name, values] : p) {
    for (double& value : values) value = *next++;
  }
  return p;
}
double dot_of(const Reals& a, const Reals& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Accepted points after `steps` evaluations of self-scaled BFGS, as in a textbook: direction d, step length t and
// inverse Hessian B. The library stores t d instead and chooses by masks. `rejected`: number of rejected trials.
Parameters by_bfgs(std::size_t steps, std::size_t* rejected = nullptr) {
  Reals p = flat(start_values()), g = flat(gradients_of(split(p)));
  const std::size_t n = p.size();
  double f = loss_of(split(p)), length = 0;
  for (const double value : g) length += std::fabs(value);
  double t = std::fmin(1, 1 / length);
  std::vector<Reals> B(n, Reals(n, 0));
  for (std::size_t i = 0; i < n; ++i) B[i][i] = 1;
  Reals d(n);
  for (std::size_t i = 0; i < n; ++i) d[i] = -g[i];
  bool fresh = true;
  for (std::size_t evaluation = 2; evaluation <= steps; ++evaluation) {  // the first is at the start
    Reals q = p, s(n), y(n), By(n);
    for (std::size_t i = 0; i < n; ++i) q[i] += s[i] = t * d[i];
    const double fq = loss_of(split(q)), slope = dot_of(g, d);
    if (fq > f + 1e-4 * t * slope) {
      if (rejected != nullptr) ++*rejected;
      t = std::fmin(std::fmax(-slope * t * t / (2 * (fq - f - slope * t)), 0.1 * t), 0.5 * t);
      continue;
    }
    const Reals gq = flat(gradients_of(split(q)));
    for (std::size_t i = 0; i < n; ++i) y[i] = gq[i] - g[i];
    const double sy = dot_of(s, y), yy = dot_of(y, y), tau = std::fmin(1, sy / (-t * dot_of(g, s)));
    EXPECT_GT(sy, 1e-10 * yy);
    for (std::size_t i = 0; fresh && i < n; ++i) B[i][i] = sy / yy;
    fresh = false;
    for (std::size_t i = 0; i < n; ++i) By[i] = dot_of(B[i], y);
    const double c = (1 + dot_of(y, By) / (tau * sy)) / sy;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k)
        B[i][k] = B[i][k] / tau + c * s[i] * s[k] - (s[i] * By[k] + By[i] * s[k]) / (tau * sy);
    }
    p = q, g = gq, f = fq, t = 1;
    for (std::size_t i = 0; i < n; ++i) d[i] = -dot_of(B[i], g);
    EXPECT_LT(dot_of(d, g), 0);
  }
  return split(p);
}

// Attempts of Levenberg-Marquardt with Nielsen's rule; the Jacobian is of differences. `rejected`: number of rejected
// attempts.
Parameters by_levenberg_marquardt(const OptimizerCase& c, std::size_t* rejected = nullptr) {
  Reals p = flat(start_values()), decays;
  for (const auto& [name, values] : start_values())
    decays.insert(decays.end(), values.size(), c.biases_decay || !is_bias(name) ? c.option("l2", 0) / 2 : 0);
  const std::size_t n = p.size();
  const auto total = [&](const Reals& at) {
    double sum = loss_of(split(at));
    for (std::size_t i = 0; i < n; ++i) sum += decays[i] * at[i] * at[i];
    return sum;
  };
  double damping = c.option("damping", 1e-3), growth = 2;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const Reals r = residuals_of(split(p));
    const double w = 1 / static_cast<double>(r.size());
    std::vector<Reals> J;
    for (std::size_t i = 0; i < n; ++i) {
      Reals above = p, below = p;
      above[i] += 1e-6, below[i] -= 1e-6;
      J.push_back(residuals_of(split(above)));
      const Reals other = residuals_of(split(below));
      for (std::size_t k = 0; k < r.size(); ++k) J[i][k] = (J[i][k] - other[k]) / 2e-6;
    }
    std::vector<Reals> A(n, Reals(n));
    Reals g(n), d(n);
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) A[i][j] = w * dot_of(J[i], J[j]) + (i == j ? decays[i] : 0);
      g[i] = w * dot_of(J[i], r) + decays[i] * p[i];
      largest = std::fmax(largest, A[i][i]);
    }
    const double shift = damping * largest;
    std::vector<Reals> L = A;  // Gauss elimination
    Reals b = g;
    for (std::size_t i = 0; i < n; ++i) L[i][i] += shift;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = i + 1; k < n; ++k) {
        const double factor = L[k][i] / L[i][i];
        for (std::size_t j = i; j < n; ++j) L[k][j] -= factor * L[i][j];
        b[k] -= factor * b[i];
      }
    }
    for (std::size_t i = n; i-- > 0;) {
      d[i] = b[i];
      for (std::size_t j = i + 1; j < n; ++j) d[i] -= L[i][j] * d[j];
      d[i] /= L[i][i];
    }
    Reals q = p;
    double predicted = 0;
    for (std::size_t i = 0; i < n; ++i) q[i] -= d[i], predicted += d[i] * (g[i] + shift * d[i]);
    const double f = total(p), fq = total(q);
    if (fq < f) {
      damping *= std::fmax(1.0 / 3, 1 - std::pow(2 * (f - fq) / predicted - 1, 3));
      growth = 2;
      p = q;
    } else {
      if (rejected != nullptr) ++*rejected;
      damping *= growth;
      growth *= 2;
    }
    damping = std::fmax(damping, c.option("min_damping", 0));
  }
  return split(p);
}

Parameters by_equations(const OptimizerCase& c) {
  if (c.optimizer == "bfgs") return by_bfgs(kSteps);
  if (c.optimizer == "levenberg_marquardt") return by_levenberg_marquardt(c);
  Parameters p = start_values(), m = start_values(), v = start_values();
  for (Parameters* slots : {&m, &v}) {
    for (auto& [name, values] : *slots) values.assign(values.size(), 0.0);
  }
  for (int t = 1; t <= static_cast<int>(kSteps); ++t) {
    Parameters g = gradients_of(p);
    clip(g, c.clip_norm, c.clip_value);
    for (auto& [name, values] : p) {
      const bool decays = c.biases_decay || !is_bias(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        update(c, decays, t, values[i], g[name][i], m[name][i], v[name][i]);
      }
    }
  }
  return p;
}

// ---- the library

Model model_of(const OptimizerCase& c) {
  GraphBuilder graph(kTrainingRows);
  graph.input("x", {kBatch, kInputs});
  graph.input("y", {kBatch, kOutputs});
  for (const auto& [name, values] : start_values()) {
    const Shape shape = kShapes.at(name);
    graph.parameter(name, shape, Init::values(test::tensor_of(DType::f32, shape, values)),
                    c.biases_decay || !is_bias(name));
  }
  graph.expression("p = tanh(x @ W1 + b1) @ W2 + b2");
  graph.expression("loss = mean(square(p - y))");
  Model model(std::move(graph));
  model.name = c.name;
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer.name = c.optimizer;
  model.train.optimizer.attributes = {c.options.begin(), c.options.end()};
  model.train.clip_norm = c.clip_norm;
  model.train.clip_value = c.clip_value;
  model.train.epochs = kSteps;
  model.data.splits = {{"train",
                        {{"x", test::tensor_of(DType::f32, {kTrainingRows, kInputs}, data_x())},
                         {"y", test::tensor_of(DType::f32, {kTrainingRows, kOutputs}, data_y())}}}};
  return model;
}

Parameters by_library(const OptimizerCase& c, const std::string& executor) {
  SessionOptions options;
  options.executor = executor;
  Session session(model_of(c), options);
  session.train();
  Parameters result;
  for (const auto& [name, shape] : kShapes) result[name] = test::to_doubles(session.read(name));
  return result;
}

void expect_near(const Parameters& got, const Parameters& expected, const std::string& what) {
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(got.at(name).size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(got.at(name)[i], values[i], kTolerance) << what << ": " << name << "[" << i << "]";
    }
  }
}

class Optimizers : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(Optimizers, FollowTheEquations) {
  const Parameters expected = by_equations(GetParam());
  for (const char* executor : {"ref", "cpu"}) expect_near(by_library(GetParam(), executor), expected, executor);
}

// The comparison can fail: no case ends within ten times the tolerance of another, nor of the start.
TEST(OptimizerCases, EndInDifferentPlaces) {
  std::vector<std::pair<std::string, Parameters>> ends = {{"start", start_values()}};
  for (const OptimizerCase& c : cases()) {
    const Parameters end = by_equations(c);
    for (const auto& [other, parameters] : ends) {
      double difference = 0;
      for (const auto& [name, values] : parameters) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          difference = std::fmax(difference, std::fabs(values[i] - end.at(name)[i]));
        }
      }
      EXPECT_GT(difference, 10 * kTolerance) << c.name << " and " << other;
    }
    ends.emplace_back(c.name, end);
  }
}

TEST(OptimizerCases, TryEveryOptimizerOfTheTable) {
  for (const OptimizerDef& def : optimizers()) {
    const bool tried =
        std::any_of(cases().begin(), cases().end(), [&](const OptimizerCase& c) { return c.optimizer == def.name; });
    EXPECT_TRUE(tried) << def.name;
  }
}

// The line search is tested: some trials are rejected.
TEST(OptimizerCases, OfBfgsRejectSomeTrials) {
  std::size_t rejected = 0;
  by_bfgs(kSteps, &rejected);
  EXPECT_GT(rejected, 2U);
  EXPECT_LT(rejected, kSteps / 2);
}

std::string optimizer_name(const ::testing::TestParamInfo<OptimizerCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, Optimizers, ::testing::ValuesIn(cases()), optimizer_name);

// ---- torch

const std::string kReference = source_folder() + "/tests/reference/";

void compare_with(const std::string& file, const std::string& text) {
  const json::Document document = json::parse(file, text);
  const json::Member* recorded = document.root.find("cases");
  ASSERT_NE(recorded, nullptr) << file;
  const auto in_torch =
      std::count_if(cases().begin(), cases().end(), [](const OptimizerCase& c) { return c.in_torch; });
  ASSERT_EQ(recorded->value.members.size(), static_cast<std::size_t>(in_torch)) << file << " has other cases";
  for (const OptimizerCase& c : cases()) {
    if (!c.in_torch) continue;
    const json::Member* entry = recorded->value.find(c.name);
    ASSERT_NE(entry, nullptr) << c.name << " is not in " << file;
    Parameters expected;
    for (const json::Member& parameter : entry->value.members) {
      for (const json::Value& item : parameter.value.items) expected[parameter.key].push_back(item.real);
    }
    ASSERT_EQ(expected.size(), kShapes.size()) << c.name;
    for (const char* executor : {"ref", "cpu"}) {
      expect_near(by_library(c, executor), expected, fmt::format("{} on {}, against torch", c.name, executor));
    }
  }
}

bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(OptimizersAndTorch, Agree) {
  const std::string python = "\"${GRAPHRUN_PYTHON:-python3}\" ";
  if (!succeeds(python + "-c 'import torch'")) GTEST_SKIP() << "torch is not installed for GRAPHRUN_PYTHON or python3";
  const std::string command = python + "'" + kReference + "optimizers_torch.py'";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> chunk{};
  for (std::size_t n = 0; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), n);
  ASSERT_EQ(pclose(pipe), 0) << command;
  compare_with("optimizers_torch.py", text);
}

TEST(OptimizersAndTorch, AgreeAsRecorded) {
  compare_with("optimizers.json", read_file(kReference + "optimizers.json"));
}

}  // namespace
}  // namespace graphrun
