// builder_impl.h: internals of a GraphBuilder, for the library's own layers.
// Contract: `graph` has one phase (index 0), the model function, from which frontend/step/step_graph.h builds the step
// graph. Both have a symbolic batch: `batch` is its value at compile time and may change at any time. Nodes have the
// names that the user gave them.
#pragma once

#include <map>
#include <set>

#include "graph/builder.h"
#include "graphrun/graph_builder.h"

namespace graphrun {

// Initializers with mean 0 and a variance of gain / fan, where fan is in + out or in.
struct FanInit {
  Init::Kind kind;
  std::string_view name;
  double gain;
  bool in_and_out, normal;
  std::string_view doc;
};
inline constexpr FanInit kFanInits[] = {
    {Init::Kind::glorot_uniform, "glorot_uniform", 2, true, false,
     "samples uniformly in ±sqrt(6 / (in + out)), where in and out are the last two extents"},
    {Init::Kind::glorot_normal, "glorot_normal", 2, true, true,
     "samples a normal distribution with mean 0 and std sqrt(2 / (in + out))"},
    {Init::Kind::he_uniform, "he_uniform", 2, false, false, "samples uniformly in ±sqrt(6 / in); suits relu"},
    {Init::Kind::he_normal, "he_normal", 2, false, true,
     "samples a normal distribution with mean 0 and std sqrt(2 / in); suits relu"},
    {Init::Kind::lecun_uniform, "lecun_uniform", 1, false, false,
     "samples uniformly in ±sqrt(3 / in); suits tanh and selu"},
    {Init::Kind::lecun_normal, "lecun_normal", 1, false, true,
     "samples a normal distribution with mean 0 and std sqrt(1 / in); suits tanh and selu"},
};
const FanInit* fan_init(Init::Kind kind);  // null for another kind

using LayerInits = std::map<std::string, std::optional<Init>, std::less<>>;  // nullopt: without this parameter

// Settings of one layer in addition to its name and operands.
struct LayerOptions {
  AttrList attributes = {};  // those in its row of the table
  LayerInits inits = {};
  std::string share = {};  // an earlier layer of the same kind; then attributes and inits are empty
  bool trainable = true;
};

class __attribute__((visibility("hidden"))) GraphBuilder::Impl {  // the enclosing class is exported
 public:
  Impl();
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  static Impl& of(Value value);  // its builder; throws Error if empty or the builder is gone

  const std::uint32_t number;  // unique in the process, from 1; stored in its Values
  std::int64_t batch = 0;      // 0: unknown
  ir::Graph graph;
  ir::Builder builder{graph};
  std::map<ir::NodeId, double> runtime;  // runtime hyperparameters and their initial values
  ir::NodeId step = ir::kNoNode;         // placeholder for the step counter of a phase
  std::vector<ir::NodeId> inputs;        // in declaration order
  struct Parameter {
    Init init = {};
    bool decay = true;      // whether weight_decay and l2 apply
    bool trainable = true;  // whether optimizers may update it
    bool is_state = false;  // only assignments update it; then it is not trainable
  };
  std::map<ir::NodeId, Parameter> parameters;  // and states, in declaration order
  struct Assignment {
    ir::NodeId state, value;
    bool after;  // whether the value is computed from the updated parameters
  };
  std::vector<Assignment> assignments;  // run in each training step; in declaration order
  // Kind and settings of each layer by name, for layers that share its parameters; excludes those.
  std::map<std::string, std::pair<std::string_view, LayerOptions>, std::less<>> layers;
  std::vector<std::pair<std::string, ir::NodeId>> batch_norms;  // layer name, normalized value
  std::map<std::string, double, std::less<>> constants;         // "constants" of the model file, pi and e
  std::map<std::string, ir::NodeId, std::less<>> names;  // visible to expressions and find(); a node may have several
  std::set<ir::NodeId> named;                            // nodes with a name from define()

  ir::NodeId node(Value value) const;  // throws Error if empty or from another builder
  Value value(ir::NodeId id) const { return {id, number}; }
  // The first extent may be kBatch.
  ir::NodeId input(std::string_view name, std::span<const std::int64_t> shape, DType dtype);
  ir::NodeId parameter(std::string_view name, const Shape& shape, Parameter parameter);
  ir::NodeId runtime_scalar(std::string_view name, double value);
  ir::NodeId state(std::string_view name, const Shape& shape, Init init);
  // Throws Error if `state` is not a state, has another type, or is already assigned.
  void assign(ir::NodeId state, ir::NodeId value, bool after);
  std::vector<ir::NodeId> trainable() const;  // parameters that an optimizer may update
  // The first name given to a node becomes its name; later ones are aliases.
  void define(std::string_view name, ir::NodeId id);
  void set_batch(std::int64_t samples);              // throws Error if out of range
  void check_new_name(std::string_view name) const;  // throws Error if invalid or taken
};

inline bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_name_part(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9') || c == '.';
}
// Matches [A-Za-z_][A-Za-z0-9_.]* except keywords of the expression grammar.
bool is_name(std::string_view text);
inline constexpr std::string_view kNameRule =
    "a name is a letter or _, then letters, digits, _ and dots; not and, or, not, true, false, none";

}  // namespace graphrun
