// random.cpp: counter-based random samples (base/random_bits.h), bitwise identical on every executor, for every tiling
// and thread count. `key` selects the stream. In a model's graph, 0 means the node's own stream, and k > 0 that of node
// k - 1; the step graph derives the final key from the seed and that node's name. `step` gives new samples each step.
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::ops {
namespace {

using List = std::vector<std::int64_t>;

TensorType declare_random(const OpCall& call) {
  return {DType::f32, infer::declared_shape(call), call.attrs.integer("rows")};
}

Params pack_random(const OpCall& call) {
  const auto [a, b] = infer::two_reals(call.attrs);
  return RandomParams{static_cast<std::uint64_t>(call.attrs.integer("key")), a, b};
}

constexpr std::string_view kIndependent = "random samples do not depend on parameters";

}  // namespace

std::vector<OpDef> random() {
  const ir::AttrDef shape{"shape", List{}, "extents", true};
  const ir::AttrDef key{"key", std::int64_t{0}, "of the stream; set by the library"};
  const ir::AttrDef rows{"rows", std::int64_t{0}, "rows a sample, 0 = no batch", false, 0.0};
  std::vector<OpDef> list = {
      {.op = family_op::random_uniform,
       .doc = "numbers in [low, high), new ones each step",
       .operands = {"step"},
       .attrs = {shape, rows, key, {"low", 0.0, "smallest"}, {"high", 1.0, "upper end, not reached"}},
       .declare = declare_random,
       .no_gradient = kIndependent,
       .rows = RowRule::select},
      {.op = family_op::random_normal,
       .doc = "numbers of the normal distribution, new ones each step",
       .operands = {"step"},
       .attrs = {shape, rows, key, {"mean", 0.0, "mean"}, {"deviation", 1.0, "standard deviation", false, 0.0}},
       .declare = declare_random,
       .no_gradient = kIndependent,
       .rows = RowRule::select},
      {.op = family_op::permutation,
       .doc = "0 … n-1 in another order each step",
       .operands = {"step"},
       .attrs = {{"n", std::int64_t{0}, "how many", true, 0.0}, key},
       .declare =
           [](const OpCall& call) {
             return TensorType{DType::i32, {call.attrs.integer("n")}, 0};
           },
       .no_gradient = kIndependent,
       .rows = RowRule::scalar},
      {.op = Op::dropout,
       .doc = "0 with probability rate, else x / (1 - rate); the identity outside training",
       .operands = {"x", "step"},
       .attrs = {{"rate", 0.5, "probability that an element is set to 0", true, 0.0, 0.999999}, key},
       .grad =  // regenerates the mask from its stream instead of storing it
       [](GradContext& c) {
         const std::int64_t own = c.attrs.integer("key");
         const std::int64_t stream = own != 0 ? own : static_cast<std::int64_t>(c.output.id) + 1;
         c.result[0] =
             make::op("dropout", {c.gradient, c.inputs[1]}, {{"rate", c.attrs.real("rate")}, {"key", stream}});
       },
       .rows = RowRule::rowwise,
       .agreement = Agreement::relative}};
  for (OpDef& def : list) {
    def.pack = pack_random;
    def.internal = true;
  }
  return list;
}

}  // namespace graphrun::ops
