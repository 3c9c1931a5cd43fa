#include "c_api/model.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "c_api/guard.h"
#include "c_api/options.h"
#include "c_api/types.h"

namespace graphrun::c_api {
namespace {

Model& content(gr_model* model) {
  std::optional<Model>& held = checked(model, "model").model;
  if (held) return *held;
  throw Error(ErrorKind::input, "c.taken", "the model was given to a session", "load it once more for another session");
}

void load(const std::string& path, LoadOptions options, gr_model** model) {
  gr_model*& to = checked(model, "model");
  auto loaded = std::make_unique<gr_model>();
  loaded->model.emplace(load_model(path, options));
  to = loaded.release();
}

}  // namespace

Model take(gr_model* model) {
  Model taken = std::move(content(model));
  model->model.reset();
  return taken;
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

gr_error* gr_model_set_data(gr_model* model, const char* split, const char* input, const gr_type* type,
                            const void* values) {
  return guarded([&] {
    DataSet& data = c_api::content(model).data;
    const std::string name = &checked(split, "split"), column = &checked(input, "input");
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
  });
}
