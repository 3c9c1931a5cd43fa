// Gradients of whole networks in double on ref against central differences, with an uneven cotangent over the samples;
// and once more through the gradients themselves. Single ops are in the conformance suite.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graph/builder.h"
#include "graph/gradients.h"
#include "graph/ops/make.h"
#include "graph/verifier.h"
#include "support/graph_run.h"
#include "support/passes.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kCapacity = 4, kSamples = 3;  // the last row of the batch is empty
constexpr double kRelativeError = 1e-7;

// A network under test: its states, and what it computes for each sample.
class Network {
 public:
  Network() {
    graph_.phases.push_back({"test", kCapacity, ir::kNoNode});
    make_.enter(0);
    count_ = make_.add("input", {}, {{"dtype", std::string("i32")}, {"shape", List{}}});
    graph_.phases[0].row_count = count_;
    values_.emplace_back(count_, test::tensor_of(DType::i32, {}, {static_cast<double>(kSamples)}));
  }

  NodeId batch(List shape) {
    shape.insert(shape.begin(), kCapacity);
    return state("input", "f64", shape, 1, -1, 1);
  }
  NodeId classes(std::int64_t n) { return state("input", "i32", {kCapacity}, 1, 0, static_cast<double>(n)); }
  NodeId parameter(const List& shape) {
    const NodeId id = state("parameter", "f64", shape, 0, -0.8, 0.8);
    parameters_.push_back(id);
    return id;
  }

  NodeId add(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {}) {
    return make_.add(op, std::move(inputs), attrs);
  }
  NodeId dense(NodeId x, std::int64_t in, std::int64_t out) {
    return add("add", {add("matmul", {x, parameter({in, out})}), parameter({out})});
  }
  NodeId mean_of_squares(NodeId x, const List& axes, double n) {
    return (make::sum(make::square(var(x)), axes, false) * (1 / n)).id;
  }
  Var var(NodeId id) { return {&make_, id}; }

  // The gradients of sum(cotangent * output), output having one number a sample, are as the differences say.
  void check_first(NodeId output) {
    const NodeId weights = cotangent(output);
    const std::vector<NodeId> gradient = gradients(make_, output, weights, parameters_);
    check(make::sum(var(output) * var(weights), {}, false).id, gradient);
  }

  // The loss is an uneven sum of all first gradients of the mean over the samples.
  void check_second(NodeId output) {
    const Var count = var(make_.sample_count(DType::f64));
    const Var mean = make::sum(var(output), {}, false) / count;
    Var loss;
    for (const NodeId gradient : gradients(make_, mean.id, parameters_)) {
      const Var part = make::sum(var(gradient) * var(cotangent(gradient)), {}, false);
      loss = loss.id == ir::kNoNode ? part : loss + part;
    }
    check(loss.id, gradients(make_, loss.id, parameters_));
  }

 private:
  NodeId state(std::string_view op, const char* dtype, const List& shape, std::int64_t rows, double low, double high) {
    AttrList attrs = {{"dtype", std::string(dtype)}, {"shape", shape}};
    if (op == "input") attrs.emplace_back("rows", rows);
    const NodeId id = make_.add(op, {}, attrs);
    const TensorType type = make_.type(id);
    HostTensor tensor = test::random_tensor(type.dtype, type.shape, low, high, make_.graph()[id].name);
    test::clear_rows(tensor, rows, kSamples);
    values_.emplace_back(id, std::move(tensor));
    return id;
  }
  NodeId cotangent(NodeId of) {
    const TensorType type = make_.type(of);
    return state("input", "f64", make::dims(type.shape), type.rows, 0.3, 1.7);
  }

  void check(NodeId loss, const std::vector<NodeId>& computed) {
    ASSERT_EQ(make_.type(loss).shape.rank(), 0);
    graph_[loss].keep = true;
    for (const NodeId id : computed) graph_[id].keep = true;
    verify(graph_);
    run_passes(graph_);  // which verify after each

    test::GraphRun run(graph_, test::executor("ref"));
    for (const auto& [node, tensor] : values_) run.write(node, tensor);
    run.run();
    std::vector<std::vector<double>> found;
    for (const NodeId id : computed) found.push_back(test::to_doubles(run.read(id)));
    double largest = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      ASSERT_EQ(make_.type(computed[i]), make_.type(parameters_[i]));
      HostTensor value = value_of(parameters_[i]);
      for (std::size_t j = 0; j < found[i].size(); ++j) {
        double& element = value.elements<double>()[j];
        const double x = element;
        const auto at = [&](double offset) {
          element = x + offset * 1e-3;
          run.write(parameters_[i], value);
          run.run();
          return run.read(loss).elements<double>()[0];
        };
        const double slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12e-3;  // of fourth order
        element = x;
        EXPECT_NEAR(found[i][j], slope, kRelativeError * std::fmax(1, std::fabs(slope)))
            << "element " << j << " of parameter " << i;
        largest = std::fmax(largest, std::fabs(slope));
      }
      run.write(parameters_[i], value);
    }
    EXPECT_GT(largest, 1e-2) << "the loss does not depend on the parameters";
  }

  const HostTensor& value_of(NodeId node) const {
    for (const auto& [id, tensor] : values_) {
      if (id == node) return tensor;
    }
    throw std::logic_error("no such state");
  }

  ir::Graph graph_;
  ir::Builder make_{graph_};
  NodeId count_ = ir::kNoNode;
  std::vector<std::pair<NodeId, HostTensor>> values_;
  std::vector<NodeId> parameters_;
};

// ---- the networks: each gives one number a sample

NodeId regression(Network& net) {
  const NodeId x = net.batch({3});
  const NodeId target = net.batch({2});
  NodeId h = net.add("tanh", {net.dense(x, 3, 5)});
  h = net.add("softplus", {net.dense(h, 5, 4)});
  return net.mean_of_squares(net.add("sub", {net.dense(h, 4, 2), target}), {1}, 2);
}

NodeId classifier(Network& net) {
  const NodeId h = net.add("gelu", {net.dense(net.batch({3}), 3, 4)});
  const NodeId target = net.add("softmax", {net.batch({5})});  // like one-hot, but uneven
  return net.add("softmax_cross_entropy", {net.dense(h, 4, 5), target});
}

NodeId classifier_of_words(Network& net) {
  const NodeId words = net.add("gather", {net.parameter({6, 4}), net.classes(6)});
  const NodeId h = net.add("silu", {net.dense(words, 4, 3)});
  return net.add("softmax_cross_entropy", {net.dense(h, 3, 4), net.classes(4)});
}

// The decoder is the encoder's matrix, transposed.
NodeId tied_weights(Network& net) {
  const NodeId x = net.batch({4});
  const NodeId w = net.parameter({4, 3});
  const NodeId code = net.add("sigmoid", {net.add("matmul", {x, w})});
  const NodeId again = net.add("matmul", {code, w}, {{"transpose_b", true}});
  return net.mean_of_squares(net.add("sub", {again, x}), {1}, 4);
}

// Five places of width three look at each other; then each is centred and scaled to variance one.
NodeId attention(Network& net) {
  const NodeId x = net.batch({5, 3});
  const auto projected = [&] { return net.add("matmul", {x, net.parameter({3, 3})}); };
  const NodeId queries = projected(), keys = projected(), values = projected();
  const NodeId scores = net.add("matmul", {queries, keys}, {{"transpose_b", true}});
  const NodeId shares = net.add("softmax", {(net.var(scores) * (1 / std::sqrt(3.0))).id});
  NodeId y = net.add("add", {net.add("matmul", {shares, values}), x});
  const auto mean = [&](NodeId of) { return (make::sum(net.var(of), {-1}, true) * (1.0 / 3)).id; };
  y = net.add("sub", {y, mean(y)});
  const NodeId variance = net.add("add", {mean(net.add("square", {y})), make::like(0.1, net.var(y)).id});
  y = net.add("mul", {net.add("mul", {y, net.add("rsqrt", {variance})}), net.parameter({3})});
  return net.add("logsumexp", {y}, {{"axes", List{1, 2}}});
}

// Movement: the halves of a layer gate each other, in another order and with an edge put around.
NodeId gates(Network& net) {
  const NodeId h = net.dense(net.batch({3}), 3, 6);
  const NodeId left = net.add("slice", {h}, {{"axis", std::int64_t{1}}, {"stop", std::int64_t{3}}});
  const NodeId right = net.add("slice", {h}, {{"axis", std::int64_t{1}}, {"start", std::int64_t{3}}});
  const NodeId gated = net.add("mul", {net.add("sigmoid", {left}), right});
  const NodeId wide = net.add("concat", {gated, net.add("exp", {left})}, {{"axis", std::int64_t{1}}});
  const NodeId cube = net.add("reshape", {wide}, {{"shape", List{-1, 2, 3}}});
  const NodeId turned = net.add("transpose", {cube}, {{"axes", List{0, 2, 1}}});
  const NodeId padded = net.add("pad", {turned}, {{"axis", std::int64_t{2}}, {"before", std::int64_t{1}}});
  return net.mean_of_squares(net.add("add", {padded, net.parameter({3, 3})}), {1, 2}, 9);
}

struct Case {
  const char* name;
  NodeId (*build)(Network&);
};
std::ostream& operator<<(std::ostream& stream, const Case& c) {
  return stream << c.name;
}

class NetworkGradients : public ::testing::TestWithParam<Case> {};

TEST_P(NetworkGradients, AreAsDifferencesSay) {
  Network net;
  net.check_first(GetParam().build(net));
}

TEST_P(NetworkGradients, OfGradientsAreAsDifferencesSay) {
  Network net;
  net.check_second(GetParam().build(net));
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, NetworkGradients,
                         ::testing::Values(Case{"regression", regression}, Case{"classifier", classifier},
                                           Case{"classifier_of_words", classifier_of_words},
                                           Case{"tied_weights", tied_weights}, Case{"attention", attention},
                                           Case{"gates", gates}),
                         case_name);

}  // namespace
}  // namespace graphrun
