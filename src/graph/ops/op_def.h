// op_def.h: definition of an op, the single source for parsing, printing, inference, gradients, planning and tests.
// Contract: independent of devices. A family file (elementwise.cpp, matmul.cpp, …) returns its OpDefs; registry.cpp
// lists the families. adding-an-op.md walks through adding one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/ir/graph.h"
#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/program.h"
#include "types/op_rules.h"

namespace graphrun {

// A node and the builder of its graph: the operand type of formulas (make.h).
struct Var {
  ir::Builder* make = nullptr;
  ir::NodeId id = ir::kNoNode;
  TensorType type() const { return make->type(id); }
};

// A node whose type is inferred.
struct OpCall : Operands {
  const ir::Attrs& attrs;
};

struct GradContext {
  std::vector<Var> inputs;
  const ir::Attrs& attrs;
  const Params params;
  Var output;
  Var gradient;                     // d loss / d output, in the output's shape and dtype
  const std::vector<bool>& wanted;  // per input: whether its gradient is needed
  std::vector<Var> result;          // per input, un-broadcast or not; Var{}: no gradient
};
using GradFn = std::function<void(GradContext&)>;

// How an op maps rows, for row analysis (compiler/graph_analysis.h) and inference of `rows`.
enum class RowRule : std::uint8_t {
  state,        // not computed: as declared
  elementwise,  // rows in, rows out; row operands have equal multiplicity and align at dimension 0
  contraction,  // matmul: rows of a are kept, or contracted away: reduced
  reduction,    // over axis 0: reduced; otherwise rows are kept
  scatter,      // rows are added to the table rows that they index: reduced
  regroup,      // reshape: dimension 0 determines the multiplicity
  rowwise,      // along an axis other than the batch: rows in, rows out
  broadcast,    // shared to row if dimension 0 is declared as the batch
  select,       // minibatch: data set in, rows out
  scalar,       // counters and records: never rows
};

// Whether the output is a view of operand 0. OpTraits::overlay has the other ways to share memory.
using ViewFn = bool (*)(const ir::Attrs&, std::span<const TensorType> inputs);
// The parts of the output's type that attributes give and Params do not: all of it for a source or a state.
using DeclareFn = TensorType (*)(const OpCall&);
// Converts attributes to what the op's rule (types/op_rules.h) and its kernels get. Runs after DeclareFn, before the
// rule.
using PackFn = Params (*)(const OpCall&);
// An operand that has class numbers or table indices, and the number of classes or table rows.
struct Classes {
  std::size_t operand = 0;
  std::int64_t count = 0;
  std::string_view noun = "class";  // term for one of its numbers in messages
};
using ClassesFn = std::optional<Classes> (*)(const ir::Attrs&, std::span<const TensorType> inputs);
using StateFn = BufferKind (*)(const ir::Attrs&);

// How closely two executors must agree on equal inputs; `graphrun verify` checks it.
enum class Agreement : std::uint8_t {
  exact,     // the op copies or selects values, or is discontinuous
  relative,  // error relative to |expected|: one rounding, or a function of known accuracy
  absolute,  // relative to max(1, |expected|): the result may cancel to 0, as a logarithm near 1
  scaled,    // relative to the sum of absolute terms: executors may add in any order
  residual,  // a solution of A x = b: by the residual, relative to |A| |x| + |b|
};

struct OpDef {
  Op op;                                        // number and name; traits_of() serves the layers below the graph
  std::string_view doc;                         // one line, including the formula
  std::vector<std::string_view> operands = {};  // names; their count is the arity
  bool variadic = false;                        // the last operand may be repeated
  ir::AttrSchema attrs = {};
  DeclareFn declare = nullptr;  // null: operands and Params determine the type
  GradFn grad = nullptr;
  std::string_view no_gradient = {};  // why `grad` is null
  RowRule rows = RowRule::elementwise;
  ViewFn view = nullptr;                    // null: never
  PackFn pack = nullptr;                    // null: NoParams
  ClassesFn classes = nullptr;              // null: no operand has class numbers or indices
  StateFn state = nullptr;                  // not null: the node is a state or source, not a step
  bool effect = false;                      // gives the state of operand 0 its next value, operand 1
  std::optional<Agreement> agreement = {};  // unset: derived from `rows`
  bool internal = false;                    // created by the library only, not available in model files

  std::string_view name() const { return name_of(op); }  // JSON name, error text, reference page
};

const std::vector<OpDef>& all_ops();  // in listing order
const OpDef& op_def(Op op);
const OpDef* find_op_def(std::string_view name);  // nullptr if there is none
std::vector<std::string> op_names();              // ops available in model files

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
