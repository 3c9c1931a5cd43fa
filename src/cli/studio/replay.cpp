#include "cli/studio/replay.h"

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "cli/pictures/html.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/program.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

// Dense layers, from the canonical form, in which a layer is an object.
void write_layers(JsonWriter& json, const Model& model) {
  json.key("layers").begin_array();
  const json::Document canonical = json::parse(model.file, model.canonical());
  for (const json::Value& entry : canonical.root.find("graph")->value.items) {
    if (entry.kind != json::Kind::object || entry.find("op")->value.string != "dense") continue;
    json.begin_object().member("name", entry.find("name")->value.string);
    json.member("from", entry.find("inputs")->value.items.front().string);
    json.member("units", entry.find("units")->value.integer);
    const json::Member* const activation = entry.find("activation");
    json.member("activation", activation == nullptr ? "none" : activation->value.string).end_object();
  }
  json.end_array();
}

std::string_view kind_of(ClassOutput::Numbers numbers) {
  return numbers == ClassOutput::Numbers::plain            ? "probabilities"
         : numbers == ClassOutput::Numbers::sigmoid_logits ? "logits"
                                                           : "softmax logits";
}

}  // namespace

Replay::Replay(const Session& session) {
  std::size_t size = 0;
  bool is_f32 = true;
  for (const Buffer& buffer : session.program().buffers) {
    if (buffer.kind != BufferKind::parameter) continue;
    parameters_.push_back(buffer.name);
    ids_.push_back(session.find(buffer.name));
    size += buffer.type.bytes();
    is_f32 = is_f32 && buffer.type.dtype == DType::f32;
  }
  if (!is_f32 || size > kMaxElements * sizeof(float)) {
    parameters_.clear();
    ids_.clear();
    return;
  }
  bytes_.resize(size);
}

std::string Replay::frame(Session& session, std::uint64_t step, double epoch) {
  std::size_t at = 0;
  for (const ValueId id : ids_) {
    const std::size_t size = session.type(id).bytes();
    session.read(id, std::span(bytes_).subspan(at, size));
    at += size;
  }
  JsonWriter json;
  json.begin_object()
      .member("step", step)
      .member("epoch", epoch)
      .member("weights", html::base64({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}));
  return json.end_object().text();
}

void Replay::write(JsonWriter& json, const Session& session) const {
  if (empty()) return;
  const Model& model = session.model();
  write_layers(json, model);
  json.key("parameters").begin_array();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    json.begin_object().member("name", parameters_[i]);
    json.member("elements", session.type(ids_[i]).shape.elements()).end_object();
  }
  json.end_array().key("rows").begin_object();
  for (const Split& split : model.data.splits) {
    std::int64_t width = 0;
    const std::int64_t rows = std::min(split.samples(), kMaxRows);
    for (const auto& [name, tensor] : split.columns)
      width += tensor.shape().elements() / std::max<std::int64_t>(1, split.samples());
    if (width == 0 || width > kMaxWidth) continue;
    json.key(split.name).begin_object();
    for (const auto& [name, tensor] : split.columns) {
      const std::int64_t wide = tensor.shape().elements() / split.samples();
      const std::vector<double> all = as_doubles(tensor);
      json.key(name).begin_array();
      for (std::int64_t i = 0; i < rows * wide; ++i) {
        const std::int64_t row = i / wide * split.samples() / rows;  // spread over the split, which may be sorted
        json.value(static_cast<float>(all[static_cast<std::size_t>(row * wide + i % wide)]));
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
  json.objects("inputs", model.data.columns, [&](const InputColumns& one) {
    json.member("name", one.input).member("columns", element_names(model.data, one.input));
    for (const Standardization& fitted : model.data.standardizations) {
      if (fitted.input != one.input || fitted.log != LogTransform::none) continue;
      json.member("shift", fitted.shift).member("scale", fitted.scale);
    }
  });
  const std::vector<ClassOutput> classes = class_outputs(model);
  const std::vector<OutlineValue> values = graph_outline(model).values;
  std::size_t i = 0;
  json.objects("outputs", model.outputs, [&](const OutputSpec& output) {
    json.member("name", output.name).member("target", output.target);
    json.member("numbers", classes[i].is_class ? kind_of(classes[i].numbers) : "values");
    ++i;
    json.key("reads").begin_array();
    const auto value = std::ranges::find(values, output.name, &OutlineValue::name);
    if (value != values.end())
      for (const std::size_t operand : value->from) json.value(values[operand].name);
    json.end_array();
  });
}

}  // namespace graphrun::cli
