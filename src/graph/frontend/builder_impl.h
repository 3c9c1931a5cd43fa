// builder_impl.h: what a GraphBuilder holds, for the library's own layers.
// Contract: `graph` has one phase (index 0) that stands for the model function; the step graph is made from it by
// frontend/step/step_graph.h. In both the batch is a symbol: `batch` is what it is when they are compiled, and may
// change at any time. Names given by the user are the nodes' names.
#pragma once

#include <map>
#include <set>

#include "graph/builder.h"
#include "graphrun/graph_builder.h"

namespace graphrun {

class __attribute__((visibility("hidden"))) GraphBuilder::Impl {  // within a class that is exported
 public:
  Impl();
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  static Impl& of(Value value);  // the builder that made it; throws Error: empty, or its builder is gone

  const std::uint32_t number;  // of this builder among all of the process, from 1: what its Values carry
  std::int64_t batch = 0;      // 0: not known yet
  ir::Graph graph;
  ir::Builder builder{graph};
  std::map<ir::NodeId, Init> inits;      // of the parameters
  std::map<ir::NodeId, double> runtime;  // numbers that the host may write between steps, and what they start from
  std::set<ir::NodeId> no_decay;         // parameters that weight_decay and l2 leave alone
  std::set<ir::NodeId> frozen;           // parameters that no optimizer moves, states among them
  std::set<ir::NodeId> states;           // parameters that change by assignments only
  ir::NodeId step = ir::kNoNode;         // stands for the counter of the phase
  std::vector<ir::NodeId> inputs;        // in order of declaration
  std::vector<ir::NodeId> parameters;
  struct Assignment {
    ir::NodeId state, value;
    bool after;  // the value is computed from the parameters as the step leaves them, not as it finds them
  };
  std::vector<Assignment> assignments;  // of each step of training, in order of declaration
  struct LayerParts {                   // of a layer that was made, for another that shares its parameters
    std::string_view op;
    AttrList attributes;
    std::map<std::string, std::optional<Init>, std::less<>> inits;
  };
  std::map<std::string, LayerParts, std::less<>> layers;  // by name; those that share parameters have none of their own
  std::vector<std::pair<std::string, ir::NodeId>> batch_norms;  // layers, and what they normalize
  std::map<std::string, double, std::less<>> constants;         // "constants" of the model file, and pi and e
  std::map<std::string, ir::NodeId, std::less<>> names;  // what expressions and find() see; a node may have several
  std::set<ir::NodeId> named;                            // the values of `names`

  ir::NodeId node(Value value) const;  // throws Error: empty, or none of this builder
  Value value(ir::NodeId id) const { return {id, number}; }
  // kBatch may stand as the first extent.
  ir::NodeId input(std::string_view name, std::span<const std::int64_t> shape, DType dtype);
  ir::NodeId parameter(std::string_view name, const Shape& shape, Init init, bool decay, bool trainable = true);
  ir::NodeId runtime_scalar(std::string_view name, double value);
  // A parameter that assignments move.
  ir::NodeId state(std::string_view name, const Shape& shape, Init init);
  // Throws Error: no state, another type, assigned before.
  void assign(ir::NodeId state, ir::NodeId value, bool after);
  std::vector<ir::NodeId> trainable() const;  // parameters that an optimizer may move
  // The first name given to a node becomes the node's name, a further one is an alias.
  void define(std::string_view name, ir::NodeId id);
  void set_batch(std::int64_t samples);              // throws Error: none, or more than are counted
  void check_new_name(std::string_view name) const;  // throws Error: no name, or given before
};

inline bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_name_part(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9') || c == '.';
}
// Whether [A-Za-z_][A-Za-z0-9_.]*, and no word of the expression grammar.
bool is_name(std::string_view text);
inline constexpr std::string_view kNameRule =
    "a name is a letter or _, then letters, digits, _ and dots; not and, or, not, true, false, none";

}  // namespace graphrun
