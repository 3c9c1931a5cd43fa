#include "conformance/harness.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace graphrun::test {
namespace {

using ir::NodeId;

std::vector<std::int64_t> dims(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

NodeId add_state(ir::Builder& builder, const Operand& operand) {
  AttrList attributes = {{"dtype", std::string(name_of(operand.type.dtype))}, {"shape", dims(operand.type.shape)}};
  if (operand.state == "input") {
    attributes.emplace_back("rows", operand.type.rows);
    return builder.add("input", {}, attributes);
  }
  if (operand.state == "parameter") return builder.add("parameter", {}, attributes);
  attributes.emplace_back("kind", std::string(operand.state));
  return builder.add("state", {}, attributes);
}

// Maps floats to integers in the same order; both zeros map to 0.
template <class Int, class Float>
double place(Float x) {
  const Int bits = std::bit_cast<Int>(x);
  const Int magnitude = bits & ~(Int{1} << (8 * sizeof(Int) - 1));
  return bits == magnitude ? static_cast<double>(magnitude) : -static_cast<double>(magnitude);
}

template <class Int, class Float>
bool near(Float value, Float reference, Tolerance tolerance) {
  if (std::isnan(reference) || std::isnan(value)) return std::isnan(reference) && std::isnan(value);
  if (value == reference) return true;
  if (std::isinf(reference) || std::isinf(value)) return false;
  // Differences of these doubles are exact for the small distances that matter here.
  if (sizeof(Float) == 4 && std::fabs(place<Int>(value) - place<Int>(reference)) <= tolerance.ulps) return true;
  const auto v = static_cast<double>(value);
  const auto r = static_cast<double>(reference);
  if (sizeof(Float) == 8 && std::fabs(v - r) <= tolerance.ulps * 0x1p-52 * std::fabs(r)) return true;
  return std::fabs(v - r) <= tolerance.relative * std::max(1.0, std::fabs(r));
}

template <class Int, class Float>
std::string float_difference(std::span<const Float> value, std::span<const Float> reference, Tolerance tolerance) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (near<Int>(value[i], reference[i], tolerance)) continue;
    return fmt::format("element {}: {} instead of {} ({:g} ulps off; allowed: {} ulps or {:g} relative)", i, value[i],
                       reference[i], std::fabs(place<Int>(value[i]) - place<Int>(reference[i])), tolerance.ulps,
                       tolerance.relative);
  }
  return {};
}

}  // namespace

SampleGraph build_operands(ir::Builder& builder, ir::Graph& graph, const Sample& sample) {
  SampleGraph built;
  for (const Operand& operand : sample.operands) built.operands.push_back(add_state(builder, operand));
  if (sample.count >= 0) built.row_count = builder.add("input", {}, {{"dtype", std::string("i32")}});
  graph.phases.push_back({"test", sample.capacity, built.row_count});
  builder.enter(0);
  return built;
}

SampleGraph build(const Sample& sample, Feed feed, std::vector<NodeId>* copies) {
  ir::Graph graph;
  ir::Builder builder(graph);
  SampleGraph built = build_operands(builder, graph, sample);
  std::vector<NodeId> inputs = built.operands;
  if (feed != Feed::states) {
    for (NodeId& input : inputs) {
      const TensorType type = builder.type(input);  // copied, because adding nodes moves them
      input = builder.add("broadcast_to", {input}, {{"shape", dims(type.shape)}, {"rows", type.rows}});
      graph[input].keep = feed == Feed::living_copies;
    }
    if (feed == Feed::same_twice) inputs.assign(inputs.size(), inputs[0]);
    if (copies != nullptr) *copies = inputs;
  }
  built.result = builder.add(sample.op, inputs, sample.attributes);
  graph[built.result].keep = true;
  built.graph = std::move(graph);
  return built;
}

std::vector<HostTensor> operand_values(const Sample& sample) {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    const Operand& operand = sample.operands[i];
    const std::string stream = fmt::format("{}.{}.{}", sample.op, sample.name, i);
    tensors.push_back(operand.values.empty()
                          ? random_tensor(operand.type.dtype, operand.type.shape, operand.low, operand.high, stream)
                          : tensor_of(operand.type.dtype, operand.type.shape, operand.values));
    clear_rows(tensors.back(), operand.type.rows, samples_in_batch(sample));
  }
  return tensors;
}

void write_operands(GraphRun& run, const SampleGraph& built, const Sample& sample,
                    const std::vector<HostTensor>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) run.write(built.operands[i], values[i]);
  if (built.row_count != ir::kNoNode) {
    run.write(built.row_count, tensor_of(DType::i32, {}, {static_cast<double>(sample.count)}));
  }
}

std::string difference(const HostTensor& value, const HostTensor& reference, Tolerance tolerance) {
  if (value.dtype() != reference.dtype() || !(value.shape() == reference.shape())) {
    throw std::logic_error("difference: the types differ");
  }
  switch (value.dtype()) {
    case DType::f32:
      return float_difference<std::int32_t>(value.elements<float>(), reference.elements<float>(), tolerance);
    case DType::f64:
      return float_difference<std::int64_t>(value.elements<double>(), reference.elements<double>(), tolerance);
    default:
      break;
  }
  const std::size_t size = size_of(value.dtype());
  for (std::size_t i = 0; i < value.bytes().size(); ++i) {
    if (value.bytes()[i] == reference.bytes()[i]) continue;
    return fmt::format("element {}: {} instead of {}", i / size, to_doubles(value)[i / size],
                       to_doubles(reference)[i / size]);
  }
  return {};
}

std::string stray_row(const HostTensor& value, const TensorType& type, std::int64_t samples) {
  const std::vector<double> elements = to_doubles(value);
  for (std::size_t i = valid_elements(type, samples); i < elements.size(); ++i) {
    if (elements[i] != 0) {
      return fmt::format("element {} of {} is {}, but the batch has {} samples", i, to_string(type), elements[i],
                         samples);
    }
  }
  return {};
}

std::string full_name(std::string_view executor, const Sample& sample) {
  return fmt::format("{}/{}/{}", executor, sample.op, sample.name);
}

}  // namespace graphrun::test
