#include "c_api/model.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "c_api/guard.h"
#include "c_api/options.h"
#include "c_api/types.h"
#include "graphrun/class_outputs.h"
#include "graphrun/show.h"

namespace graphrun::c_api {
namespace {

Model& content(gr_model* model) {
  std::optional<Model>& held = checked(model, "model").model;
  if (held) return *held;
  throw Error(ErrorKind::input, "c.taken", "the model is owned by a session", "load it again for another session");
}

void load(const std::string& path, LoadOptions options, gr_model** model) {
  gr_model*& to = checked(model, "model");
  auto loaded = std::make_unique<gr_model>();
  loaded->model.emplace(load_model(path, options));
  to = loaded.release();
}

std::vector<OutlineValue> inputs_of(const Model& model) {
  std::vector<OutlineValue> inputs = graph_outline(model).values;
  std::erase_if(inputs, [](const OutlineValue& value) {
    return value.role != OutlineValue::Role::input && value.role != OutlineValue::Role::target;
  });
  return inputs;
}

void check_is_input(const Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const OutlineValue& value : inputs_of(model)) names.push_back(value.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw Error(ErrorKind::input, "name.unknown", "the model has no input '" + name + "'", did_you_mean(name, names));
}

std::string description(const Model& model) {
  constexpr std::string_view kScores[] = {"plain", "softmax_logits", "sigmoid_logits"};  // ClassOutput::Numbers
  JsonWriter json(JsonWriter::Spacing::after_signs);
  json.begin_object().member("name", model.name);
  json.objects("inputs", inputs_of(model), [&](const OutlineValue& input) {
    json.member("name", input.name).member("dtype", name_of(input.type.dtype));
    json.member("shape", input.type.shape.dims().subspan(1));
    json.member("target", input.role == OutlineValue::Role::target);
    write_columns(json, model.data, input.name);
  });
  const std::vector<ClassOutput> classes = class_outputs(model);
  json.objects("outputs", model.outputs, [&](const OutputSpec& output) {
    const ClassOutput& how = classes[static_cast<std::size_t>(&output - model.outputs.data())];
    json.member("name", output.name).member("target", output.target).member("classes", how.is_class);
    json.member("scores", kScores[static_cast<std::size_t>(how.numbers)]).member("labels", how.words);
    json.member("multi_label", how.is_multi_label);
  });
  return json.end_object().text();
}

}  // namespace

Model take(gr_model* model) {
  Model taken = std::move(content(model));
  model->model.reset();
  change_original(taken);
  return taken;
}

void write_columns(JsonWriter& json, const DataSet& data, std::string_view input) {
  std::vector<std::pair<std::string, std::vector<std::string>>> columns;
  for (const InputColumns& one : data.columns) {
    for (std::size_t i = 0; one.input == input && i < one.names.size(); ++i)
      columns.emplace_back(one.names[i], one.words[i]);
  }
  if (columns.empty()) return;
  json.objects("columns", columns,
               [&](const auto& column) { json.member("name", column.first).member("words", column.second); });
}

}  // namespace graphrun::c_api

using namespace graphrun;
using c_api::checked;
using c_api::guarded;

gr_error* gr_model_load(const char* path, const char* options, gr_model** model) {
  return guarded([&] { c_api::load(&checked(path, "path"), c_api::load_options(options), model); });
}
gr_error* gr_model_parse(const char* json, const char* options, gr_model** model) {
  return guarded([&] {
    LoadOptions load = c_api::load_options(options);
    load.text = std::make_shared<std::optional<std::string>>(&checked(json, "json"));
    c_api::load("<text>", std::move(load), model);
  });
}
void gr_model_free(gr_model* model) {
  delete model;
}

gr_error* gr_model_describe(gr_model* model, char** json) {
  return guarded([&] {
    char*& to = checked(json, "json");
    to = c_api::owned_text(c_api::description(c_api::content(model)));
  });
}

gr_error* gr_model_set_data(gr_model* model, const char* split, const char* input, const gr_type* type,
                            const void* values) {
  return guarded([&] {
    DataSet& data = c_api::content(model).data;
    const std::string name = &checked(split, "split"), column = &checked(input, "input");
    c_api::check_is_input(c_api::content(model), column);
    const TensorType known = c_api::type_of(checked(type, "type"));
    HostTensor tensor(known.dtype, known.shape);
    if (!tensor.bytes().empty())
      std::memcpy(tensor.bytes().data(), &checked(static_cast<const char*>(values), "values"), tensor.bytes().size());
    auto found = std::find_if(data.splits.begin(), data.splits.end(), [&](const Split& s) { return s.name == name; });
    if (found == data.splits.end()) found = data.splits.insert(found, Split{name, {}, 0});
    auto& columns = found->columns;
    const auto same = [&](const auto& one) { return one.first == column; };
    std::erase_if(found->codes, same);
    if (const auto old = std::find_if(columns.begin(), columns.end(), same); old != columns.end())
      old->second = std::move(tensor);
    else
      columns.emplace_back(column, std::move(tensor));
    if (std::find(found->original.begin(), found->original.end(), column) == found->original.end())
      found->original.push_back(column);
  });
}
