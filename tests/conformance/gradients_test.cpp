// Gradients of every op against finite differences, on ref in double: first derivatives, and second ones through the
// gradient of the gradient. The cotangents are uneven, so that an element in the wrong position is detected.
#include <fmt/format.h>
#include <gtest/gtest-spi.h>

#include <cmath>
#include <utility>

#include "conformance/harness.h"
#include "conformance/samples.h"
#include "conformance/suite.h"
#include "graph/gradients.h"
#include "graph/ops/op_def.h"

namespace graphrun::test {
namespace {

using ir::NodeId;

constexpr double kRelativeError = 1e-6;
constexpr std::size_t kElementsTried = 24;  // per operand

Sample in_double(Sample sample) {
  for (Operand& operand : sample.operands) {
    if (operand.type.dtype == DType::f32) operand.type.dtype = DType::f64;
  }
  return sample;
}

// Graph with a scalar loss of the sample's operands, and its gradients.
struct LossGraph {
  SampleGraph built;
  std::vector<std::pair<NodeId, HostTensor>> cotangents;  // inputs to write
  std::vector<std::size_t> wanted;                        // operands of a float dtype
  NodeId loss = ir::kNoNode;
  std::vector<NodeId> gradients;
};

class Builder {
 public:
  explicit Builder(const Sample& sample) : sample_(sample), builder_(graph_) {
    out_.built = build_operands(builder_, graph_, sample);
    for (std::size_t i = 0; i < sample.operands.size(); ++i) {
      if (!is_float(sample.operands[i].type.dtype)) continue;
      out_.wanted.push_back(i);
      nodes_.push_back(out_.built.operands[i]);
    }
  }

  LossGraph first() {
    const NodeId y = builder_.add(sample_.op, out_.built.operands, sample_.attributes);
    return finish(weighted_sum(y));
  }

  // The loss is the weighted sum of the first gradients.
  LossGraph second() {
    const NodeId y = builder_.add(sample_.op, out_.built.operands, sample_.attributes);
    NodeId loss = ir::kNoNode;
    for (const NodeId gradient : gradients(builder_, weighted_sum(y), nodes_)) {
      const NodeId part = weighted_sum(gradient);
      loss = loss == ir::kNoNode ? part : builder_.add("add", {loss, part});
    }
    return finish(loss);
  }

 private:
  NodeId weighted_sum(NodeId value) {
    const TensorType type = builder_.type(value);
    const std::vector<std::int64_t> shape(type.shape.dims().begin(), type.shape.dims().end());
    const NodeId cotangent =
        builder_.add("input", {}, {{"dtype", std::string(name_of(type.dtype))}, {"shape", shape}, {"rows", type.rows}});
    HostTensor weights = random_tensor(type.dtype, type.shape, 0.3, 1.7, fmt::format("cotangent {}", ++count_));
    clear_rows(weights, type.rows, samples_in_batch(sample_));
    out_.cotangents.emplace_back(cotangent, std::move(weights));
    return builder_.add("sum", {builder_.add("mul", {value, cotangent})});
  }

  LossGraph finish(NodeId loss) {
    out_.loss = loss;
    out_.gradients = gradients(builder_, loss, nodes_);
    graph_[loss].keep = true;
    for (const NodeId gradient : out_.gradients) graph_[gradient].keep = true;
    out_.built.graph = std::move(graph_);
    return std::move(out_);
  }

  const Sample& sample_;
  ir::Graph graph_;
  ir::Builder builder_;
  LossGraph out_;
  std::vector<NodeId> nodes_;
  int count_ = 0;
};

// d loss / d element, by the fourth-order central difference.
template <class Loss>
double slope(double& element, const Loss& loss) {
  const double x = element;
  const double h = 1e-3 * std::fmax(1, std::fabs(x));
  const auto at = [&](double offset) {
    element = x + offset * h;
    return loss();
  };
  const double result = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
  element = x;
  return result;
}

void check_gradients(const Sample& sample, const LossGraph& graph) {
  GraphRun run(graph.built.graph, executor("ref"));
  std::vector<HostTensor> values = operand_values(sample);
  write_operands(run, graph.built, sample, values);
  for (const auto& [node, tensor] : graph.cotangents) run.write(node, tensor);
  run.run();
  std::vector<HostTensor> computed;
  for (const NodeId gradient : graph.gradients) computed.push_back(run.read(gradient));

  for (std::size_t i = 0; i < graph.wanted.size(); ++i) {
    const std::size_t operand = graph.wanted[i];
    const TensorType& type = sample.operands[operand].type;
    ASSERT_EQ(graph.built.graph[graph.gradients[i]].type, type) << "the gradient of operand " << operand;
    EXPECT_EQ(stray_row(computed[i], type, samples_in_batch(sample)), "");
    const auto loss = [&] {
      run.write(graph.built.operands[operand], values[operand]);
      run.run();
      return run.read(graph.loss).elements<double>()[0];
    };
    const std::size_t valid = valid_elements(type, samples_in_batch(sample));
    const std::size_t stride = valid / kElementsTried + 1;
    for (std::size_t j = 0; j < valid; j += stride) {
      const double difference = slope(values[operand].elements<double>()[j], loss);
      const double gradient = computed[i].elements<double>()[j];
      EXPECT_NEAR(gradient, difference, kRelativeError * std::fmax(1, std::fabs(difference)))
          << "element " << j << " of operand " << operand;
    }
    run.write(graph.built.operands[operand], values[operand]);
  }
}

// Proves that the comparison can fail: assigns each gradient to the other operand.
TEST(GradientCheck, AWrongGradientIsFound) {
  const auto failures_of = [](const Sample& sample, const LossGraph& graph) {
    ::testing::TestPartResultArray failures;
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    check_gradients(sample, graph);
    return failures.size();
  };
  const TensorType type = typed(DType::f64, {4});
  Sample mul{.op = "mul", .name = "self_test", .operands = {{type, 1, 2}, {type, 3, 4}}};
  LossGraph graph = Builder(mul).first();
  EXPECT_EQ(failures_of(mul, graph), 0);
  std::swap(graph.gradients[0], graph.gradients[1]);
  EXPECT_EQ(failures_of(mul, graph), 8);
}

}  // namespace

void register_gradients() {
  for (const Sample& sample : all_samples()) {
    if (!sample.gradient) continue;
    register_test("Gradients", full_name("first", sample), __FILE__, __LINE__,
                  [s = in_double(sample)] { check_gradients(s, Builder(s).first()); });
    if (!sample.first_only.empty()) continue;
    register_test("Gradients", full_name("second", sample), __FILE__, __LINE__,
                  [s = in_double(sample)] { check_gradients(s, Builder(s).second()); });
  }
}

}  // namespace graphrun::test
