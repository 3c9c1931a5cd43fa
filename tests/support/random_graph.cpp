#include "support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>

#include "compiler/graph_analysis.h"
#include "graph/builder.h"
#include "graph/ops/op_def.h"
#include "graphrun/error.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;
using Reals = std::vector<double>;

constexpr double kMargin = 1e-2;                 // minimum distance of a value from an edge
constexpr double kLargest = 1e3;                 // maximum magnitude of any value
constexpr std::int64_t kMaxValueElements = 500;  // per value, for the usual batch
constexpr std::int64_t kUsualBatch = 6;
constexpr int kTries = 60;  // random operands and attributes per op

struct RandomValue {
  TensorType type;
  HostTensor tensor;
};

// Standard engines give the same numbers on every platform; standard distributions do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t range(std::int64_t low, std::int64_t high) {  // both inclusive
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double real(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(engine_() >> 11), -53);
  }
  bool chance(double p) { return real(0, 1) < p; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

// ---- domains and edges

// Properties of a candidate node that a rule can check before it is added.
struct Question {
  std::vector<Reals> operands;  // elements in the batch's samples
  std::vector<TensorType> types;
  ir::Attrs attrs;
  // Elements of another op on the same operands; nullopt if it does not accept them.
  std::function<std::optional<Reals>(std::string_view op)> other;
};

using Rule = std::function<bool(const Question&)>;

bool all(const Reals& values, const std::function<bool(double)>& holds) {
  return std::all_of(values.begin(), values.end(), holds);
}
double to_integer(double x) {
  return std::fabs(x - std::round(x));
}
Rule within(double low, double high) {
  return [=](const Question& q) { return all(q.operands[0], [=](double x) { return x >= low && x <= high; }); };
}
Rule off_zero(double margin = kMargin) {
  return [=](const Question& q) { return all(q.operands[0], [=](double x) { return std::fabs(x) > margin; }); };
}
Rule off_integers(double shift = 0) {
  return
      [=](const Question& q) { return all(q.operands[0], [=](double x) { return to_integer(x + shift) > kMargin; }); };
}
bool unequal(const Question& q) {
  if (!is_float(q.types[0].dtype)) return true;
  const std::optional<Reals> difference = q.other("sub");
  return difference && all(*difference, [](double d) { return std::fabs(d) > kMargin; });
}
bool no_ties(const Question& q) {
  Reals sorted = q.operands[0];
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] < kMargin * kMargin) return false;
  }
  return true;
}
bool good_divisor(const Question& q) {
  return all(q.operands[1], [](double y) { return std::fabs(y) > 0.1; });
}
bool good_mod(const Question& q) {
  if (!good_divisor(q)) return false;
  const std::optional<Reals> quotient = q.other("div");
  return quotient && all(*quotient, [](double x) { return to_integer(x) > kMargin; });
}
bool good_power(const Question& q) {
  return all(q.operands[0], [](double x) { return x > 0.1 && x < 4; }) &&
         all(q.operands[1], [](double y) { return std::fabs(y) < 4; });
}
bool off_bounds(const Question& q) {
  const double low = q.attrs.real("low"), high = q.attrs.real("high");
  return all(q.operands[0], [=](double x) { return std::fabs(x - low) > kMargin && std::fabs(x - high) > kMargin; });
}
bool good_cast(const Question& q) {
  DType to{};
  if (!parse_dtype(q.attrs.string("dtype"), to)) return false;
  if (is_float(to) || q.types[0].dtype == DType::boolean) return true;
  if (to == DType::u64 && !all(q.operands[0], [](double x) { return x >= 0; })) return false;
  if (!is_float(q.types[0].dtype)) return true;
  if (to == DType::boolean) return all(q.operands[0], [](double x) { return std::fabs(x) > kMargin; });
  return all(q.operands[0], [](double x) { return to_integer(x) > kMargin; });
}
bool are_classes(const Question& q) {
  const double classes = static_cast<double>(q.types[0].shape[q.types[0].shape.rank() - 1]);
  return q.types[1].dtype != DType::i32 || all(q.operands[1], [=](double c) { return c >= 0 && c < classes; });
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = {
      {"floor", off_integers()},
      {"ceil", off_integers()},
      {"round", off_integers(0.5)},
      {"sign", off_zero()},
      {"abs", off_zero()},
      {"relu", off_zero()},
      {"leaky_relu", off_zero()},
      {"elu", off_zero()},
      {"selu", off_zero()},
      {"clip", off_bounds},
      {"equal", unequal},
      {"not_equal", unequal},
      {"less", unequal},
      {"less_equal", unequal},
      {"greater", unequal},
      {"greater_equal", unequal},
      {"minimum", unequal},
      {"maximum", unequal},
      {"max", no_ties},
      {"min", no_ties},
      {"argmax", no_ties},
      {"argmin", no_ties},
      {"mod", good_mod},
      {"cast", good_cast},
      {"div", good_divisor},
      {"pow", good_power},
      {"softmax_cross_entropy", are_classes},
      {"reciprocal", off_zero(0.1)},
      {"sqrt", within(0.01, kLargest)},
      {"rsqrt", within(0.01, kLargest)},
      {"log", within(0.01, kLargest)},
      {"log1p", within(-0.9, kLargest)},
      {"exp", within(-20, 6)},
      {"expm1", within(-20, 6)},
      {"sin", within(-50, 50)},
      {"cos", within(-50, 50)},
      {"tan",
       [](const Question& q) { return all(q.operands[0], [](double x) { return std::fabs(std::cos(x)) > 0.1; }); }},
  };
  return table;
}

// ---- the generator

// All ops, with effects on states, which add_node() passes over, but without the others that are left out, so that
// existing seeds keep their graphs.
const std::vector<OpDef>& drawn_ops() {
  static const std::vector<OpDef> ops = [] {
    std::vector<OpDef> list = all_ops();
    std::erase_if(
        list, [](const OpDef& op) { return is_left_out(op.name()) && op.name() != "assign" && op.name() != "record"; });
    return list;
  }();
  return ops;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const Executor& candidate, std::int64_t largest_batch, DType real)
      : dice_(seed), candidate_(candidate), largest_batch_(largest_batch), real_(real) {}

  RandomGraph run() {
    const auto size = static_cast<NodeId>(dice_.range(5, 40));
    add_batch();
    add_sources(static_cast<int>(dice_.range(1, size < 12 ? 2 : 6)));
    for (int tries = 0; out_.graph.size() < size; ++tries) {
      if (tries > 5000) throw std::logic_error("random_graph: no op fits any more");
      if (dice_.chance(0.05)) {
        repeat_a_node();
      } else {
        add_node(dice_.one_of(drawn_ops()));
      }
    }
    keep_some();
    return std::move(out_);
  }

 private:
  // Counter, row count and one minibatch: as in a step graph.
  void add_batch() {
    capacity_ = dice_.range(1, largest_batch_);
    total_ = capacity_ * dice_.range(1, 3) + (dice_.chance(0.5) ? dice_.range(0, capacity_ - 1) : 0);
    out_.graph.phases.push_back({"test", capacity_, ir::kNoNode});
    make_.enter(0);
    const std::int64_t batches = (total_ + capacity_ - 1) / capacity_;
    const std::int64_t batch = dice_.chance(0.5) ? batches - 1 : dice_.range(0, batches - 1);
    out_.samples = std::min(capacity_, total_ - batch * capacity_);
    HostTensor counter(DType::u64, {});
    counter.elements<std::uint64_t>()[0] = static_cast<std::uint64_t>(batch + batches * dice_.range(0, 2));
    step_ = make_.add("input", {}, {{"dtype", std::string("u64")}, {"shape", List{}}});
    make_.count_steps(step_);
    remember_input(step_, counter);
    if (total_ % capacity_ != 0) {
      const NodeId count = make_.add("row_count", {step_}, {{"total", total_}, {"capacity", capacity_}});
      out_.graph.phases[0].row_count = count;
      HostTensor rows(DType::i32, {});
      rows.elements<std::int32_t>()[0] = static_cast<std::int32_t>(out_.samples);
      values_.emplace(count, RandomValue{out_.graph[count].type, rows});
    }
    add_data(real_, dice_.chance(0.7) ? List{total_, width()} : List{total_, width(), width()});
  }

  std::int64_t width() { return dice_.one_of(List{1, 3, 4, 4, 5, 17}); }

  void add_data(DType dtype, const List& shape) {
    const NodeId data = add_input({dtype, Shape(shape), 0});
    if (std::optional<RandomValue> rows = trial("minibatch", {data, step_}, {{"capacity", capacity_}})) {
      remember(make_.add("minibatch", {data, step_}, {{"capacity", capacity_}}), std::move(*rows));
    }
  }

  NodeId add_input(const TensorType& type, std::string_view op = "input") {
    AttrList attrs = {{"dtype", std::string(name_of(type.dtype))},
                      {"shape", List(type.shape.dims().begin(), type.shape.dims().end())}};
    if (type.rows > 0) attrs.emplace_back("rows", type.rows);
    const NodeId id = make_.add(op, {}, attrs);
    const bool real = is_float(type.dtype);
    HostTensor tensor = random_tensor(type.dtype, type.shape, real ? -2 : 0, real ? 2 : 3,
                                      make_.graph()[id].name + std::to_string(dice_.range(0, 1 << 30)));
    clear_rows(tensor, type.rows, out_.samples);
    remember_input(id, tensor);
    return id;
  }

  void add_sources(int count) {
    for (int i = 0; i < count; ++i) {
      switch (dice_.range(0, 13)) {
        case 0:
          add_data(real_, {total_, width()});
          break;
        case 1:
          add_data(real_, dice_.chance(0.3) ? List{total_, width(), width(), width()} : List{total_, width(), width()});
          break;
        case 2:
          add_input({real_, {width()}, 0}, "parameter");
          break;
        case 3:
          add_input({real_, {width(), width()}, 0}, "parameter");
          break;
        case 4:
          add_input({real_, {}, 0}, "parameter");
          break;
        case 5:
          add_input({real_, {1, width()}, 0}, "parameter");
          break;
        case 6:
          add_input({DType::i32, {capacity_}, 1});
          break;
        case 7:
          add_data(DType::i32, {total_});
          break;
        case 8:
          add_input({DType::boolean, {capacity_, width()}, 1});
          break;
        case 9:
          add_input({real_, {2 * capacity_, width()}, 2});
          break;
        case 10:
          add_input({DType::boolean, {width()}, 0});
          break;
        case 11:
          add_input({real_, {2, width(), width()}, 0}, "parameter");
          break;
        case 12:
          add_input({real_, {0, width()}, 0}, "parameter");
          break;
        default: {
          const double number = dice_.one_of(Reals{0, 1, 2, 0.5});
          remember(make_.scalar(number, real_), {{real_, {}, 0}, tensor_of(real_, {}, {number})});
        }
      }
    }
  }

  void remember_input(NodeId id, const HostTensor& tensor) {
    out_.inputs.emplace_back(id, tensor);
    remember(id, {out_.graph[id].type, tensor});
  }
  void remember(NodeId id, RandomValue value) {
    if (values_.emplace(id, std::move(value)).second) operands_.push_back(id);
  }

  void add_node(const OpDef& op) {
    if (op.state != nullptr || is_left_out(op.name())) return;
    for (int i = 0; i < kTries; ++i) {
      std::vector<NodeId> inputs;
      const std::size_t more = op.variadic ? static_cast<std::size_t>(dice_.range(0, 3)) : 0;
      for (std::size_t k = 0; k < op.operands.size() + more; ++k) inputs.push_back(draw_operand());
      AttrList attrs = draw_attributes(op, inputs);
      std::optional<RandomValue> value = trial(op.name(), inputs, attrs);
      if (!value || !is_good(op, inputs, attrs, *value)) continue;
      remember(make_.add(op.name(), inputs, attrs), std::move(*value));
      return;
    }
  }

  // A duplicate node, for common subexpression elimination.
  void repeat_a_node() {
    const NodeId id = dice_.one_of(operands_);
    const ir::Node node = out_.graph[id];
    if (node.def->state == nullptr)
      remember(make_.add(name_of(node.op), node.inputs, node.attrs.list()), values_.at(id));
  }

  NodeId draw_operand() {
    const auto last = static_cast<std::int64_t>(operands_.size()) - 1;
    const std::int64_t first = dice_.chance(0.4) ? std::max<std::int64_t>(last - 4, 0) : 0;
    return operands_[static_cast<std::size_t>(dice_.range(first, last))];
  }

  AttrList draw_attributes(const OpDef& op, const std::vector<NodeId>& inputs) {
    AttrList attrs;
    const TensorType type = inputs.empty() ? TensorType() : out_.graph[inputs[0]].type;
    const bool draws = op.rows == RowRule::select && op.op != Op::minibatch;
    const bool rows = draws ? dice_.chance(0.5) : type.rows > 0;
    for (const ir::AttrDef& def : op.attrs) {
      // Attributes of the graph are numbers: an omitted batch would be symbolic.
      if (def.name == "shards") continue;  // the phase would need the capacity of a shard
      if (!def.required && def.name != "rows" && def.name != "capacity" && dice_.chance(0.4)) continue;
      attrs.emplace_back(def.name, draw_attribute(op, def, type, rows));
    }
    return attrs;
  }

  AttrValue draw_attribute(const OpDef& op, const ir::AttrDef& def, const TensorType& type, bool rows) {
    const int rank = type.shape.rank();
    if (std::holds_alternative<bool>(def.fallback)) return def.name == "drop_last" ? false : dice_.chance(0.5);
    if (std::holds_alternative<std::string>(def.fallback)) {
      return std::string(def.one_of.empty() ? std::get<std::string>(def.fallback)
                                            : std::string(dice_.one_of(def.one_of)));
    }
    if (std::holds_alternative<double>(def.fallback)) {
      const double low = std::max(def.low.value_or(-2), -2.0);
      return dice_.real(low, std::min(def.high.value_or(2), 2.0));
    }
    if (std::holds_alternative<std::int64_t>(def.fallback)) {
      if (def.name == "axis" && rank > 0) return dice_.range(-rank, rank - 1);
      if (def.name == "capacity") return capacity_;
      if (def.name == "total") return total_;
      if (def.name == "rows") return std::int64_t{rows ? std::max<std::int64_t>(type.rows, 1) : 0};
      if (def.name == "key") return dice_.range(0, std::numeric_limits<std::int32_t>::max());
      return dice_.range(def.low ? static_cast<std::int64_t>(*def.low) : -3, 5);
    }
    if (def.name == "axes") return draw_axes(op, rank);
    if (def.name == "shape") return draw_shape(op, type, rows);
    if (op.op == family_op::fold && rank > 2) {  // takes windows without gaps along one axis
      const std::int64_t positions = type.shape[rank - 3], size = type.shape[rank - 2];
      return def.name == "extents" ? List{positions + size - 1} : def.name == "size" ? List{size} : List{1};
    }
    if (op.op == family_op::windows) return List{dice_.range(1, 3)};
    return def.fallback;
  }

  List draw_axes(const OpDef& op, int rank) {
    List axes;
    for (int axis = 0; axis < rank; ++axis) axes.push_back(dice_.chance(0.3) ? axis - rank : axis);
    for (std::size_t i = axes.size(); i > 1; --i) {
      std::swap(axes[i - 1], axes[static_cast<std::size_t>(dice_.range(0, static_cast<std::int64_t>(i) - 1))]);
    }
    if (op.op != Op::transpose && !axes.empty()) {
      axes.resize(static_cast<std::size_t>(dice_.range(0, static_cast<std::int64_t>(axes.size()))));
    }
    return axes;
  }

  List draw_shape(const OpDef& op, const TensorType& type, bool rows) {
    List shape(type.shape.dims().begin(), type.shape.dims().end());
    if (op.rows == RowRule::broadcast) {
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1 && !(rows && i == 0)) shape[i] = width();
      }
      if (!rows && dice_.chance(0.4)) shape.insert(shape.begin(), width());
    } else if (op.rows == RowRule::regroup) {
      const auto at = dice_.range(0, static_cast<std::int64_t>(shape.size()));
      switch (dice_.range(0, 3)) {
        case 0:
          shape.insert(shape.begin() + at, 1);
          break;
        case 1:
          shape = {-1};
          break;
        case 2:
          shape = {-1, width()};
          break;
        default:
          shape = {shape.empty() ? 1 : shape[0], -1};
      }
    } else {
      shape.clear();
      if (rows) shape.push_back(capacity_ * std::max<std::int64_t>(type.rows, 1));
      const std::int64_t more = dice_.range(0, 2);
      for (std::int64_t i = 0; i < more; ++i) shape.push_back(width());
    }
    return shape;
  }

  // Runs the op alone on ref; nullopt if the operands are invalid or ref or the candidate does not support it.
  std::optional<RandomValue> trial(std::string_view op, const std::vector<NodeId>& inputs,
                                   const AttrList& attrs) const {
    ir::Graph graph;
    graph.phases.push_back({"trial", capacity_, ir::kNoNode});
    ir::Builder make(graph);
    make.enter(0);
    std::map<NodeId, NodeId> copies;
    std::vector<NodeId> operands;
    for (const NodeId input : inputs) {
      const auto [entry, fresh] = copies.emplace(input, ir::kNoNode);
      if (fresh) {
        const TensorType type = out_.graph[input].type;
        entry->second = make.add("input", {},
                                 {{"dtype", std::string(name_of(type.dtype))},
                                  {"shape", List(type.shape.dims().begin(), type.shape.dims().end())},
                                  {"rows", type.rows}});
      }
      operands.push_back(entry->second);
    }
    NodeId count = ir::kNoNode;
    if (total_ % capacity_ != 0) {
      count = make.add("input", {}, {{"dtype", std::string("i32")}, {"shape", List{}}});
      graph.phases[0].row_count = count;
    }
    try {
      const NodeId result = make.add(op, operands, attrs);
      graph[result].keep = true;
      if (graph[result].type.shape.elements() * kUsualBatch > kMaxValueElements * largest_batch_) return std::nullopt;
      lower_for(graph, candidate_);
      GraphRun run(graph, executor("ref"));
      for (const auto& [original, copy] : copies) run.write(copy, values_.at(original).tensor);
      if (count != ir::kNoNode) {
        run.write(count, tensor_of(DType::i32, {}, {static_cast<double>(out_.samples)}));
      }
      run.run();
      return RandomValue{graph[result].type, run.read(result)};
    } catch (const Error& error) {
      if (error.diagnostics().front().code == "program.rule") throw;  // a bug of the compiler, not of the operands
      return std::nullopt;
    }
  }

  Reals elements(const RandomValue& value) const {
    Reals list = to_doubles(value.tensor);
    list.resize(valid_elements(value.type, out_.samples));
    return list;
  }

  bool is_good(const OpDef& op, const std::vector<NodeId>& inputs, const AttrList& attrs,
               const RandomValue& result) const {
    // A minibatch of other data, or by another counter, would have a different sample count than the phase.
    if (op.op == Op::minibatch && (values_.at(inputs[0]).type.shape[0] != total_ || inputs[1] != step_)) return false;
    // Rows without a batch: the declared extent must be the batch's.
    if (result.type.rows > 0 && result.type.shape[0] != result.type.rows * capacity_) return false;
    if (!all(to_doubles(result.tensor), [](double x) { return std::fabs(x) <= kLargest; })) return false;
    const auto rule = rules().find(op.name());
    if (rule == rules().end()) return true;
    Question question;
    for (const NodeId input : inputs) {
      question.operands.push_back(elements(values_.at(input)));
      question.types.push_back(values_.at(input).type);
    }
    question.attrs = ir::Attrs(op.attrs, attrs);
    question.other = [&](std::string_view other) -> std::optional<Reals> {
      const std::optional<RandomValue> value = trial(other, inputs, {});
      if (!value) return std::nullopt;
      return elements(*value);
    };
    return rule->second(question);
  }

  // Keeps all leaves and some other nodes: a kept value cannot share its storage with a later one.
  void keep_some() {
    const std::vector<std::vector<NodeId>> readers = analyze(out_.graph).consumers;
    for (NodeId id = 0; id < out_.graph.size(); ++id) {
      if (out_.graph[id].def->state != nullptr || (!readers[id].empty() && !dice_.chance(0.2))) continue;
      out_.graph[id].keep = true;
      out_.kept.emplace_back(id, values_.at(id).tensor);
    }
  }

  Dice dice_;
  const Executor& candidate_;
  std::int64_t largest_batch_;
  DType real_;
  RandomGraph out_;
  ir::Builder make_{out_.graph};
  std::map<NodeId, RandomValue> values_;
  std::vector<NodeId> operands_;  // nodes available as operands
  std::int64_t capacity_ = 1, total_ = 1;
  NodeId step_ = ir::kNoNode;
};

}  // namespace

RandomGraph random_graph(std::uint64_t seed, const Executor& candidate, std::int64_t largest_batch, DType real) {
  return Generator(seed, candidate, largest_batch, real).run();
}

bool is_left_out(std::string_view op) {
  return op == "assign" || op == "record" || op == "stop_gradient" || op == "solve_spd" || op == "shard_step" ||
         op == "combine_shards" || op == "divide_step" || op.starts_with("varying_");
}

}  // namespace graphrun::test
