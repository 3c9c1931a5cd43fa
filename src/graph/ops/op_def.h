// op_def.h: what an op is: the one description from which parsing, printing, inference, gradients, planning and tests
// follow. Contract: no device word in it. A family file (elementwise.cpp, matmul.cpp, …) returns its OpDefs;
// registry.cpp lists the families. adding-an-op.md walks through adding one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graphrun/error.h"
#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/program.h"

namespace graphrun {

// Makes nodes; what gradients and functions made of ops build with. Implemented by ir::Builder.
class NodeFactory {
 public:
  virtual ~NodeFactory() = default;
  virtual ir::NodeId add(std::string_view op, std::vector<ir::NodeId> inputs, const AttrList& attrs = {}) = 0;
  virtual TensorType type(ir::NodeId id) const = 0;          // a copy: adding a node moves the others
  virtual ir::NodeId scalar(double value, DType dtype) = 0;  // a constant; one node for each value
  // Samples in this batch as a scalar of the given float type: what a mean over rows divides by.
  virtual ir::NodeId sample_count(DType dtype) = 0;
  // The counter of finished steps (u64 scalar): what draws new numbers each step.
  virtual ir::NodeId step() = 0;
  // Whether the step is one of training, as a bool scalar.
  virtual ir::NodeId training() = 0;
  virtual const ir::Graph& graph() const = 0;
};

// A node and who made it: what formulas are written with (make.h).
struct Var {
  NodeFactory* make = nullptr;
  ir::NodeId id = ir::kNoNode;
  TensorType type() const { return make->type(id); }
};

struct InferContext {
  std::span<const TensorType> inputs;
  const ir::Attrs& attrs;
  std::span<const std::string> operand_names;  // "x", "W1": how messages name the inputs

  // Throws Error (kind input).
  [[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) const;
  std::string operand(std::size_t i) const;  // "x f32(batch, 6)"
};
using InferFn = TensorType (*)(const InferContext&);

struct GradContext {
  std::vector<Var> inputs;
  const ir::Attrs& attrs;
  Var output;
  Var gradient;                     // of the output: its shape and dtype
  const std::vector<bool>& wanted;  // whether the gradient of each input is asked for
  std::vector<Var> result;          // of each input; Var{}: none. May have the shape before un-broadcasting.
};
using GradFn = std::function<void(GradContext&)>;

// How the batch runs through an op: what row analysis (compiler/row_analysis.h) and inference of `rows` go by.
enum class RowRule : std::uint8_t {
  state,        // no computation: as declared
  elementwise,  // rows in, rows out; all row operands have the same multiplicity and meet at dimension 0
  contraction,  // matmul: rows of a stay; rows contracted away give Reduced
  reduction,    // axis 0 reduced: Reduced; otherwise rows stay
  scatter,      // rows are added to rows of a table that they name: Reduced
  regroup,      // reshape: the multiplicity follows dimension 0
  rowwise,      // along an axis that is not the batch: rows in, rows out
  broadcast,    // Shared to Row where dimension 0 is declared the batch
  select,       // minibatch: data set in, rows out
  scalar,       // counters and records: never rows
};

// Where an output may live. Decided before planning.
enum class Alias : std::uint8_t {
  none,
  view,       // the same bytes as operand 0; no kernel runs
  may_reuse,  // may be written in place of any input of the same type, if that one dies here
  must_be,    // is written in place of operand 0
};
// Whether the output is the bytes of operand 0. Where else it may live, the traits say.
using ViewFn = bool (*)(const ir::Attrs&, std::span<const TensorType> inputs);
using PackFn = Params (*)(const ir::Attrs&, std::span<const TensorType> inputs, const TensorType& output);
// An operand that numbers classes or the rows of a table, and how many there are.
struct Classes {
  std::size_t operand = 0;
  std::int64_t count = 0;
  std::string_view noun = "class";  // what a number is called
};
using ClassesFn = std::optional<Classes> (*)(const ir::Attrs&, std::span<const TensorType> inputs);
using StateFn = BufferKind (*)(const ir::Attrs&);

// How near two executors must come to each other from equal inputs; what `graphrun verify` goes by.
enum class Agreement : std::uint8_t {
  exact,     // the op moves or selects values, or jumps
  relative,  // to the expected value: one rounding, or a function of known accuracy
  absolute,  // to max(1, |expected|): where the result may cancel to nothing, as a logarithm does near 1
  scaled,    // to the sum of absolute terms: the order of adding is each executor's own
};

struct OpDef {
  Op op;                                        // its number and name; what is known of it below the graph: traits_of
  std::string_view doc;                         // one line, the formula included
  std::vector<std::string_view> operands = {};  // their names, which also is the arity
  bool variadic = false;                        // the last operand may come any number of times, at least once
  ir::AttrSchema attrs = {};
  InferFn infer = nullptr;
  GradFn grad = nullptr;
  std::string_view no_gradient = {};  // why `grad` is null
  RowRule rows = RowRule::elementwise;
  ViewFn view = nullptr;                    // null: never
  PackFn pack = nullptr;                    // null: NoParams
  ClassesFn classes = nullptr;              // null: no operand numbers anything
  StateFn state = nullptr;                  // set: the node is a state or source, no step
  std::optional<Agreement> agreement = {};  // unset: follows from `rows`
  bool internal = false;                    // made by the library only; not for model files

  std::string_view name() const { return name_of(op); }  // JSON name, error text, reference page
};

const std::vector<OpDef>& all_ops();  // in listing order
const OpDef& op_def(Op op);
const OpDef* find_op_def(std::string_view name);  // nullptr when there is none
std::vector<std::string> op_names();              // those that model files may use

namespace ops {  // the families
std::vector<OpDef> sources();
std::vector<OpDef> elementwise();
std::vector<OpDef> matmul();
std::vector<OpDef> reductions();
std::vector<OpDef> rowwise();
std::vector<OpDef> random();
std::vector<OpDef> movement();
}  // namespace ops

}  // namespace graphrun
