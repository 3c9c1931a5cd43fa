// reference.cpp: op_reference(): generates ops.md from the registries.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/executor.h"
#include "graphrun/op.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

// Escapes table text: a bar would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string default_text(const ir::AttrDef& def) {
  if (def.required) return "required";
  std::string text = ir::to_string(def.fallback);
  return text.empty() || text == "[]" ? "none" : text;
}

std::string attributes(const ir::AttrSchema& schema) {
  std::string text;
  for (const ir::AttrDef& def : schema) {
    const std::string type = expected(def);
    text += fmt::format("{}`{}` ({}): {}{}", text.empty() ? "" : "<br>", def.name, default_text(def),
                        type == "a word" ? "" : type + ", ", def.doc);
  }
  return cell(text);
}

std::string operands(const std::vector<std::string_view>& names, bool variadic) {
  return fmt::format("{}{}", fmt::join(names, ", "), variadic ? ", …" : "");
}

std::string function_table() {
  std::string text = "| function | operands | attributes (default) | description | gradient |\n|---|---|---|---|---|\n";
  for (const Function& f : functions()) {
    const OpDef* op = f.build == nullptr ? find_op_def(f.name) : nullptr;
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", f.name, operands(f.operands, f.variadic),
                        attributes(f.attributes), cell(f.doc),
                        !op        ? "computed from the gradients of its ops"
                        : op->grad ? "yes"
                                   : cell("none: " + std::string(op->no_gradient)));
  }
  return text;
}

std::string layer_table() {
  std::string text = "| layer | operands | attributes (default) | description |\n|---|---|---|---|\n";
  for (const Layer& layer : layers()) {
    std::string attrs = attributes(layer.attributes);
    for (const LayerInit& init : layer.inits) {
      const json::Value usual = json_of(init.fallback);
      attrs += fmt::format("<br>`{}` ({}): initializer of the {}{}", init.name,
                           usual.kind == json::Kind::string ? usual.string : json::line(usual),
                           init.name == "init" ? "weights" : init.name, init.optional ? ", or false to omit it" : "");
    }
    attrs += "<br>" + attributes(common_layer_attributes());
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", layer.name, operands(layer.operands, false), attrs, cell(layer.doc));
  }
  return text;
}

std::string keyed_row(const Entry& entry) {
  return fmt::format("| `{}` | {} | {} |\n", entry.name, attributes(entry.attributes), cell(entry.doc));
}

// Queries the library's own executors; plug-ins report their own support.
std::string dtype_table() {
  std::string text = "| dtype | executors |\n|---|---|\n";
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::u64, DType::boolean}) {
    const TensorType from{dtype, {2, 3}, 0}, to{dtype == DType::f32 ? DType::i32 : DType::f32, {2, 3}, 0};
    std::string names;
    for (const std::string_view name : {"ref", "cpu"}) {
      const std::shared_ptr<Executor> executor = find_executor(name);
      const Target& target = find_target(std::string(executor->default_target()));
      const Params none;
      const bool runs = executor->supports({Op::cast, none, {from}, to}, target).yes &&
                        executor->supports({Op::cast, none, {to}, from}, target).yes;
      if (runs) names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
    }
    text += fmt::format("| `{}` | {} |\n", name_of(dtype), names);
  }
  return text;
}

}  // namespace

std::string op_reference() {
  std::string text =
      "<!-- Generated from the registries: GRAPHRUN_WRITE_GOLDEN=1 test_graph --gtest_filter='Generated*' -->\n\n"
      "# Functions, layers, optimizers, schedules, metrics\n\n"
      "This page lists every function, layer, initializer, optimizer, schedule and metric of a model file, with "
      "attributes and\ndefaults. `graphrun help NAME` prints one entry. [model-format.md](model-format.md) describes "
      "where each is allowed.\n\n- [Functions](#functions) and [dtypes](#dtypes)\n- [Layers](#layers) and "
      "[initializers](#initializers)\n- [Optimizers](#optimizers), [schedules](#schedules) and [metrics](#metrics)\n\n";
  text +=
      "## Functions\n\nCall a function in an expression, or name it as the `\"op\"` of an object in the graph. `axis` "
      "and `axes` are\nsynonyms.\n\n" +
      function_table();
  text +=
      "\n## Dtypes\n\nThe dtypes of `cpu` and `ref` are fixed; `cuda` and plug-ins report theirs when graphrun plans a "
      "model. An\nunsupported value is an error that names its place in the file.\n\n" +
      dtype_table();
  text +=
      "\n## Layers\n\nA layer creates its own parameters. Name it as the `\"op\"` of an object in the graph, or call "
      "it: `\"y = dense(…)\"`.\n\n" +
      layer_table();
  text += "\n## Initializers\n\n| initializer | argument | description |\n|---|---|---|\n";
  for (const InitDoc& doc : init_docs()) text += fmt::format("| `{}` | {} | {} |\n", doc.name, doc.argument, doc.doc);
  text += "\n## Optimizers\n\n| optimizer | keys (default) | description |\n|---|---|---|\n";
  for (const OptimizerDef& def : optimizers()) text += keyed_row(def);
  text +=
      "\n## Schedules\n\nt is the time in steps or epochs, after the warmup.\n\n"
      "| schedule | keys (default) | description |\n|---|---|---|\n";
  for (const ScheduleDef& def : schedules()) text += keyed_row(def);
  text += "\n## Metrics\n\n| metric | description |\n|---|---|\n";
  for (const MetricDef& def : metrics()) text += fmt::format("| `{}` | {} |\n", def.name, cell(def.doc));
  return text;
}

}  // namespace graphrun
