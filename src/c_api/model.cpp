#include "c_api/model.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/json_text.h"
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

void check_is_input(const Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const OutlineValue& value : graph_outline(model).values) {
    if (value.role == OutlineValue::Role::input || value.role == OutlineValue::Role::target)
      names.push_back(value.name);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw Error(ErrorKind::input, "name.unknown", "the model has no input '" + name + "'", did_you_mean(name, names));
}

json::Value input_description(const Model& model, const OutlineValue& input) {
  std::vector<json::Value> shape;
  for (int axis = 1; axis < input.type.shape.rank(); ++axis) shape.push_back(json::make(input.type.shape[axis]));
  json::Value all = json::make_object({{"name", json::make(input.name)},
                                       {"dtype", json::make(name_of(input.type.dtype))},
                                       {"shape", json::make_array(std::move(shape))},
                                       {"target", json::make(input.role == OutlineValue::Role::target)}});
  add_columns(all, model.data, input.name);
  return all;
}

json::Value output_description(const OutputSpec& output, const ClassOutput& classes) {
  constexpr std::string_view kScores[] = {"plain", "softmax_logits", "sigmoid_logits"};  // ClassOutput::Numbers
  return json::make_object({{"name", json::make(output.name)},
                            {"target", json::make(output.target)},
                            {"classes", json::make(classes.is_class)},
                            {"scores", json::make(kScores[static_cast<std::size_t>(classes.numbers)])},
                            {"labels", json::make_list(classes.words)},
                            {"multi_label", json::make(classes.is_multi_label)}});
}

json::Value description(const Model& model) {
  std::vector<json::Value> inputs, outputs;
  for (const OutlineValue& value : graph_outline(model).values) {
    if (value.role == OutlineValue::Role::input || value.role == OutlineValue::Role::target)
      inputs.push_back(input_description(model, value));
  }
  const std::vector<ClassOutput> classes = class_outputs(model);
  for (std::size_t i = 0; i < model.outputs.size(); ++i)
    outputs.push_back(output_description(model.outputs[i], classes[i]));
  return json::make_object({{"name", json::make(model.name)},
                            {"inputs", json::make_array(std::move(inputs))},
                            {"outputs", json::make_array(std::move(outputs))}});
}

}  // namespace

Model take(gr_model* model) {
  Model taken = std::move(content(model));
  model->model.reset();
  change_original(taken);
  return taken;
}

void add_columns(json::Value& described, const DataSet& data, std::string_view input) {
  std::vector<json::Value> columns;
  for (const InputColumns& one : data.columns) {
    for (std::size_t i = 0; one.input == input && i < one.names.size(); ++i)
      columns.push_back(
          json::make_object({{"name", json::make(one.names[i])}, {"words", json::make_list(one.words[i])}}));
  }
  if (!columns.empty()) json::add(described, "columns", json::make_array(std::move(columns)));
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
    to = c_api::owned_text(json::line(c_api::description(c_api::content(model))));
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
    if (const auto old = std::find_if(columns.begin(), columns.end(), same); old != columns.end())
      old->second = std::move(tensor);
    else
      columns.emplace_back(column, std::move(tensor));
    if (std::find(found->original.begin(), found->original.end(), column) == found->original.end())
      found->original.push_back(column);
  });
}
