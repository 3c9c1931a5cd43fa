#include "graph/frontend/builder_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numbers>

#include "graph/ops/make.h"
#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

[[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

void check_init(std::string_view name, const Shape& shape, const Init& init) {
  if (const FanInit* fan = fan_init(init.kind); fan != nullptr && shape.rank() < 2) {
    fail("parameter.init", fmt::format("{}: {} needs two extents (in, out), got {}", name, fan->name, to_string(shape)),
         "a vector usually starts from zeros");
  }
  if (init.kind == Init::Kind::nguyen_widrow && shape.rank() != 1 && !(shape.rank() == 2 && shape[0] == 1)) {
    fail(
        "parameter.init",
        fmt::format("{}: nguyen_widrow is for the weights (1, units) and the biases (units) of a layer with one input, "
                    "got {}",
                    name, to_string(shape)),
        "glorot_uniform suits several inputs");
  }
  if (init.kind == Init::Kind::values && (!is_float(init.tensor.dtype()) || !(init.tensor.shape() == shape))) {
    fail("parameter.init",
         fmt::format("{}: the given values are {}{}, the parameter is f32{}", name,
                     name_of(is_float(init.tensor.dtype()) ? DType::f32 : init.tensor.dtype()),
                     to_string(init.tensor.shape()), to_string(shape)),
         init.tensor.shape().rank() == 0 ? "{\"constant\": v} gives every element the same value" : "");
  }
  for (const double number : {init.a, init.b}) {
    if (!std::isfinite(static_cast<float>(number))) {
      fail("parameter.init", fmt::format("{}: {} is not a finite f32 number", name, number));
    }
  }
  if (init.kind == Init::Kind::values && init.tensor.bytes().size() != TensorType{init.tensor.dtype(), shape}.bytes()) {
    fail("parameter.init", fmt::format("{}: the tensor of values was moved away from", name));
  }
  if (init.kind == Init::Kind::normal && !(init.b >= 0)) {
    fail("parameter.init", fmt::format("{}: the standard deviation must be >= 0, got {}", name, init.b));
  }
  if (init.kind == Init::Kind::uniform && !(init.a <= init.b)) {
    fail("parameter.init", fmt::format("{}: uniform needs low <= high, got [{}, {}]", name, init.a, init.b));
  }
}

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

}  // namespace

const FanInit* fan_init(Init::Kind kind) {
  const auto* found = std::ranges::find(kFanInits, kind, &FanInit::kind);
  return found == std::end(kFanInits) ? nullptr : found;
}

bool is_name(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"and",  "or",   "not",   "true", "false",
                                                             "none", "True", "False", "None"};
  return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name_part) &&
         std::find(kWords.begin(), kWords.end(), text) == kWords.end();
}

namespace {
// Registry of live builders, for operators on Values, which store only the builder's number.
struct Builders {
  std::mutex mutex;
  std::map<std::uint32_t, GraphBuilder::Impl*> by_number;
};
Builders& builders() {
  static Builders all;
  return all;
}
}  // namespace

GraphBuilder::Impl& GraphBuilder::Impl::of(Value value) {
  if (value.valid()) {
    const std::lock_guard lock(builders().mutex);
    if (const auto found = builders().by_number.find(value.owner); found != builders().by_number.end())
      return *found->second;
  }
  fail("value.invalid", value.valid() ? "the value belongs to no builder that is there still"
                                      : "the value is empty: it was never given one");
}

GraphBuilder::Impl::~Impl() {
  const std::lock_guard lock(builders().mutex);
  builders().by_number.erase(number);
}

GraphBuilder::Impl::Impl() : number(next_number()) {
  graph.phases.push_back({"model"});
  builder.enter(0);
  const ir::NodeId count = graph.phases[0].row_count = make::source(builder, "input", {DType::i32, {}, 0}).id;
  builder.rename(count, "batch.count");
  step = make::source(builder, "input", {DType::u64, {}, 0}).id;
  builder.rename(step, "batch.step");
  builder.count_steps(step);
  constants = {{"pi", std::numbers::pi}, {"e", std::numbers::e}};
  const std::lock_guard lock(builders().mutex);
  builders().by_number.emplace(number, this);
}

void GraphBuilder::Impl::set_batch(std::int64_t samples) {
  if (samples < 1) fail("batch.size", fmt::format("the batch must hold at least 1 sample, got {}", samples));
  if (samples > kMaxBatch) {
    fail("batch.size", fmt::format("the batch may hold {} samples at most, got {}", kMaxBatch, samples));
  }
  batch = samples;
}

ir::NodeId GraphBuilder::Impl::node(Value value) const {
  if (value.owner == number && value.id < graph.size()) return value.id;
  fail("value.invalid",
       value.valid() ? "the value does not belong to this builder" : "the value is empty: it was never given one");
}

void GraphBuilder::Impl::check_new_name(std::string_view name) const {
  if (!is_name(name)) {
    fail("name.invalid", fmt::format("'{}' is not a name", name), std::string(kNameRule));
  }
  if (constants.contains(name)) {
    fail("name.taken", fmt::format("{} is the name of a constant", name), "choose another name");
  }
  if (const auto taken = names.find(name); taken != names.end()) {
    const ir::SourceRef& source = graph[taken->second].source;
    fail("name.taken",
         source.line > 0 ? fmt::format("{} is already defined at {} (line {})", name, source.pointer, source.line)
                         : fmt::format("{} is already defined", name),
         "a name is given once");
  }
}

void GraphBuilder::Impl::define(std::string_view name, ir::NodeId id) {
  check_new_name(name);
  // All uses of a number share one node, so it does not get a name.
  const bool shared_number = graph[id].op == Op::constant && graph[id].type.shape.rank() == 0;
  if (!named.contains(id) && !shared_number) {
    const ir::NodeId other = builder.find(name);  // a node with a generated name is renamed
    if (other != ir::kNoNode && other != id) builder.rename(other, builder.unique(name));
    if (other != id) builder.rename(id, std::string(name));
    named.insert(id);
  }
  names.emplace(name, id);
}

ir::NodeId GraphBuilder::Impl::input(std::string_view name, std::span<const std::int64_t> shape, DType dtype) {
  check_new_name(name);
  const bool rows = !shape.empty() && shape[0] == kBatch;
  if (shape.size() > kMaxRank) {
    fail("shape.rank", fmt::format("{}: a tensor has at most {} dimensions, got {}", name, kMaxRank, shape.size()));
  }
  for (std::size_t i = rows ? 1 : 0; i < shape.size(); ++i) {
    if (shape[i] < 0) {
      fail("shape.extent", fmt::format("{}: an extent must be >= 0, got {}", name, extent_text(shape[i])),
           "only the first extent may be the batch");
    }
  }
  const ir::NodeId id = make::source(builder, "input", {dtype, Shape(shape), 0}, {{"rows", std::int64_t{rows}}}).id;
  define(name, id);
  inputs.push_back(id);
  return id;
}

ir::NodeId GraphBuilder::Impl::parameter(std::string_view name, const Shape& shape, Parameter parameter) {
  check_new_name(name);
  check_init(name, shape, parameter.init);
  for (const std::int64_t extent : shape.dims()) {
    if (extent < 0) fail("shape.extent", fmt::format("{}: an extent must be >= 0, got {}", name, extent));
  }
  builder.enter(ir::kShared);
  const ir::NodeId id = make::source(builder, "parameter", {DType::f32, shape, 0}).id;
  builder.enter(0);
  define(name, id);
  parameters.emplace(id, std::move(parameter));
  return id;
}

ir::NodeId GraphBuilder::Impl::runtime_scalar(std::string_view name, double value) {
  check_new_name(name);
  if (!std::isfinite(static_cast<float>(value)))
    fail("runtime.value", fmt::format("{}: {} is not a finite f32 number", name, value));
  builder.enter(ir::kShared);
  const ir::NodeId id = make::source(builder, "state", {DType::f32, {}, 0}, {{"kind", std::string("slot")}}).id;
  builder.enter(0);
  define(name, id);
  runtime.emplace(id, value);
  return id;
}

ir::NodeId GraphBuilder::Impl::state(std::string_view name, const Shape& shape, Init init) {
  return parameter(name, shape, {.init = std::move(init), .trainable = false, .is_state = true});
}

void GraphBuilder::Impl::assign(ir::NodeId state, ir::NodeId value, bool after) {
  const ir::Node& to = graph[state];
  const auto found = parameters.find(state);
  const bool is_parameter = found != parameters.end();
  if (!is_parameter || !found->second.is_state) {
    fail("assign.state",
         fmt::format("{} is {}; only a state can be assigned", to.name,
                     is_parameter ? "a parameter, which its optimizer updates" : "computed"),
         is_parameter ? R"(a value that only assignments change is declared in "states")" : "");
  }
  if (!(to.type == graph[value].type)) {
    fail("shape.assign", fmt::format("the state {} is {}, the assigned value is {}", to.name, to_string(to.type),
                                     to_string(graph[value].type)));
  }
  for (const Assignment& other : assignments) {
    if (other.state == state) fail("assign.twice", fmt::format("{} is assigned twice", to.name), "a step does it once");
  }
  assignments.push_back({state, value, after});
}

std::vector<ir::NodeId> GraphBuilder::Impl::trainable() const {
  std::vector<ir::NodeId> found;
  for (const auto& [id, parameter] : parameters) {
    if (parameter.trainable) found.push_back(id);
  }
  return found;
}

}  // namespace graphrun
