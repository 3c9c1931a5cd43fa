// Gradients at corners, ends and infinities beside torch's (tests/reference/singular_gradients.txt), on every executor
// that is here. What differs is listed, with the reason; gradients.md tells it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/builder.h"
#include "graph/gradients.h"
#include "support/graph_run.h"
#include "support/source_folder.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Reals = std::vector<double>;

// A line of the file: x and dx are vectors where the function takes one; y and dy are empty for one operand.
struct Line {
  std::string op, x_text, y_text;
  Reals x, y, dx, dy;
};

Reals numbers(const std::string& text) {
  Reals values;
  if (text == "-") return values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) values.push_back(std::strtod(part.c_str(), nullptr));
  return values;
}

std::vector<Line> lines() {
  std::ifstream file(source_folder() + "/tests/reference/singular_gradients.txt");
  std::vector<Line> all;
  std::string op, x, y, dx, dy;
  while (file >> op >> x >> y >> dx >> dy) {
    all.push_back({op, x, y, numbers(x), numbers(y), numbers(dx), numbers(dy)});
  }
  return all;
}

AttrList attributes(const std::string& op) {
  if (op == "clip") return {{"low", -1.0}, {"high", 1.0}};
  return {};
}

class Gradient {
 public:
  explicit Gradient(const Line& line) {
    graph_.phases.push_back({"test", 1, ir::kNoNode});
    make_.enter(0);
    const auto input = [&](const Reals& values) {
      const auto size = static_cast<std::int64_t>(values.size());
      return make_.add("input", {}, {{"shape", std::vector<std::int64_t>{size}}});
    };
    operands_.push_back(input(line.x));
    if (!line.y.empty()) operands_.push_back(input(line.y));
    NodeId value = result(line.op);
    if (make_.type(value).shape.rank() > 0) value = make_.add("sum", {value});
    gradients_ = gradients(make_, value, operands_);
    if (line.op.starts_with("second_")) {
      gradients_ = gradients(make_, make_.add("sum", {gradients_[0]}), operands_);
    }
    // Each in a node of its own: it may be a constant, or both operands' at once.
    for (NodeId& id : gradients_) {
      id = make_.add("mul", {id, make_.scalar(1, DType::f32)});
      graph_[id].keep = true;
    }
  }

  std::vector<Reals> run(const Line& line, const std::shared_ptr<Executor>& executor) const {
    GraphRun run(graph_, executor);
    run.write(operands_[0], tensor_of(DType::f32, graph_[operands_[0]].type.shape, line.x));
    if (!line.y.empty()) run.write(operands_[1], tensor_of(DType::f32, graph_[operands_[1]].type.shape, line.y));
    run.run();
    std::vector<Reals> found;
    for (const NodeId id : gradients_) found.push_back(to_doubles(run.read(id)));
    return found;
  }

 private:
  NodeId result(const std::string& op) {
    if (op == "norm") return make_.add("sqrt", {make_.add("sum", {make_.add("square", operands_)})});
    if (op == "second_prod") return make_.add("prod", operands_);
    const NodeId value = make_.add(op, operands_, attributes(op));
    if (op != "softmax" && op != "log_softmax") return value;
    return make_.add("slice", {value}, {{"start", std::int64_t{0}}, {"stop", std::int64_t{1}}});
  }

  ir::Graph graph_;
  ir::Builder make_{graph_};
  std::vector<NodeId> operands_, gradients_;
};

bool same(double ours, double torch) {
  if (std::isnan(torch) || std::isnan(ours)) return std::isnan(torch) && std::isnan(ours);
  if (std::isinf(torch) || std::isinf(ours)) return ours == torch;
  return std::fabs(ours - torch) <= 1e-5 * std::fabs(torch) + 3e-45;  // 3e-45: two of the smallest subnormals
}

bool all_same(const Reals& ours, const Reals& torch) {
  if (ours.size() != torch.size()) return false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!same(ours[i], torch[i])) return false;
  }
  return true;
}

// What is not torch's, by "op x" or "op x y": ours, as dx or "dx dy".
// NaN stays NaN, or is 0, where torch gives a slope; a quotient that is infinite is not rounded down to NaN or -1.
const std::map<std::string, std::string> kDiffers = {
    {"abs nan", "nan"},       {"relu nan", "0"},        {"elu nan", "nan"},       {"selu nan", "nan"},
    {"minimum nan 0", "0 0"}, {"minimum 0 nan", "0 0"}, {"minimum 1 nan", "0 0"}, {"maximum nan 0", "0 0"},
    {"maximum 0 nan", "0 0"}, {"maximum 1 nan", "0 0"}, {"mod inf 1", "1 -inf"},  {"mod inf 2", "1 -inf"},
    {"mod inf -1", "1 inf"},  {"mod -inf 1", "1 inf"},  {"mod 2 -inf", "1 0"},
};

std::string text(const Reals& values) {
  std::string all;
  for (const double value : values) all += fmt::format("{}{:.9g}", all.empty() ? "" : ",", value);
  return all;
}

TEST(SingularGradients, AreTorchsButForThoseListed) {
  const std::vector<Line> all = lines();
  ASSERT_GT(all.size(), 600u);
  for (const auto& [name, executor] : executors().present) {
    std::size_t differing = 0;
    for (const Line& line : all) {
      const std::vector<Reals> ours = Gradient(line).run(line, executor);
      const std::string key = line.op + " " + line.x_text + (line.y.empty() ? "" : " " + line.y_text);
      const auto listed = kDiffers.find(key);
      std::string expected = line.y.empty() ? text(line.dx) : text(line.dx) + " " + text(line.dy);
      bool agrees = all_same(ours[0], line.dx) && (line.y.empty() || all_same(ours[1], line.dy));
      if (listed != kDiffers.end()) {
        EXPECT_FALSE(agrees) << key << " is torch's and need not be listed";
        ++differing;
        expected = listed->second;
        const std::size_t space = expected.find(' ');
        agrees = all_same(ours[0], numbers(expected.substr(0, space))) &&
                 (line.y.empty() || all_same(ours[1], numbers(expected.substr(space + 1))));
      }
      EXPECT_TRUE(agrees) << name << ": " << key << " gives " << text(ours[0]) << " "
                          << (line.y.empty() ? "" : text(ours[1])) << ", expected " << expected;
    }
    EXPECT_EQ(differing, kDiffers.size()) << "a line of the list is not in the file";
  }
}

}  // namespace
}  // namespace graphrun::test
