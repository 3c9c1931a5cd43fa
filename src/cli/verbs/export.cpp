// export.cpp: the verbs `export-c`, `export-onnx` and `import-onnx`: convert models to and from other formats.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/terminal/result_file.h"
#include "graphrun/deployment.h"
#include "graphrun/error.h"
#include "graphrun/weights.h"

namespace graphrun::cli {
namespace {

// Loads the model with the weights to export, on the reference executor.
Session open_to_export(const Arguments& arguments, Diagnostics& diagnostics) {
  if (arguments.load.weights.empty() && !is_weights(arguments.model, arguments.load)) {
    throw Error(ErrorKind::input, "export.weights", fmt::format("{} has no weights", arguments.verb),
                "--weights names a file of --save-weights, or the model is such a safetensors file");
  }
  LoadOptions load = arguments.load;
  load.predicts = 1;
  Arguments on_ref = arguments;
  on_ref.session = {};
  on_ref.session.executor = "ref";
  on_ref.session.fuse = false;
  return open_session(read_model(arguments, load, diagnostics), on_ref, diagnostics);
}

// Lists the preprocessing that the caller must do.
void note_columns(const Deployment& exported, std::string_view where, Diagnostics& diagnostics) {
  if (exported.columns.empty()) return;
  diagnostics.note(
      fmt::format("the inputs are transformed table columns, and their transforms are not exported; {} has "
                  "the numbers",
                  where));
}

int run_export_c(const Arguments& arguments, Diagnostics& diagnostics) {
  ResultFile file(arguments.output, "export.write", {arguments.model, arguments.load.weights});
  Session session = open_to_export(arguments, diagnostics);
  const std::string& named = arguments.output.empty() ? session.model().name : arguments.output;
  const Deployment exported = deployment(session);
  file.write(c_source(exported, c_name(named)));
  note_columns(exported, "the comment at the top", diagnostics);
  return kDone;
}

int run_export_onnx(const Arguments& arguments, Diagnostics& diagnostics) {
  ResultFile file(arguments.output, "export.write", {arguments.model, arguments.load.weights});
  Session session = open_to_export(arguments, diagnostics);
  const Deployment exported = deployment(session, {.rows = 3, .views = false, .examples = 1});
  file.write(onnx_model(exported));
  note_columns(exported, "its doc_string", diagnostics);
  return kDone;
}

// Loads the model from text instead of a file.
int run_import_onnx(const Arguments& arguments, Diagnostics& diagnostics) {
  if (!arguments.output.ends_with(".safetensors"))
    throw Error(ErrorKind::input, "usage.flags", "import-onnx needs --output FILE.safetensors",
                "such a file holds the model with its weights");
  ResultFile file(arguments.output, "export.write", {arguments.word});
  const ImportedModel imported = import_onnx(arguments.word);
  LoadOptions load;
  load.text = std::make_shared<std::optional<std::string>>(imported.text);
  load.predicts = 1;
  SessionOptions options;
  options.executor = "ref";
  Session session(load_model(arguments.word, load), options);
  for (const auto& [name, value] : imported.parameters) session.write(name, value);
  save_weights(session, file.file());
  diagnostics.note(fmt::format("wrote {}; graphrun predict {} DATA uses it", arguments.output, arguments.output));
  return kDone;
}

}  // namespace

const Verb export_c_verb = {
    "export-c",
    "",
    Positionals::model,
    "export a trained model as one C99 file without dependencies",
    R"(Writes a C function that predicts one row. It has the weights as constants and allocates no memory. export-c
needs --weights, or a safetensors file as the model, but no data.

Inputs and outputs are in the units of the data. If the model preprocesses columns of a table (transforms,
categories, imputation, dates, formulas), the function takes a struct with the columns: numbers and Unix times
as double, categories as codes with a table of their names. Class labels have such a table, too.

All names begin with the name of the output file (without --output: of the model). -DNET_SELF_TEST adds a
main() to net.c that compares the predictions with graphrun's.)",
    R"(graphrun train model.json --save-weights model.safetensors
graphrun export-c model.safetensors -o net.c
cc -std=c99 -DNET_SELF_TEST net.c -lm -o net && ./net)",
    run_export_c};

const Verb export_onnx_verb = {
    "export-onnx",
    "",
    Positionals::model,
    "export a trained model as an ONNX file",
    R"(Writes ONNX with IR version 8 and opset 17, for any batch size. export-onnx needs --weights, or a safetensors
file as the model, but no data. It reports all unsupported ops together.

Inputs and outputs are in the units of the data. If the model preprocesses columns of a table (transforms,
categories, imputation, dates, formulas), each column is an input: numbers and Unix times as double,
categories as strings. Class labels are an output of strings.)",
    R"(graphrun export-onnx model.safetensors -o net.onnx)",
    run_export_onnx};

const Verb import_onnx_verb = {
    "import-onnx",
    "",
    Positionals::onnx,
    "read a network from an ONNX file",
    R"(Reads the nodes that docs/guide/deployment.md lists, and weights in a second file of the same folder. Writes
a safetensors file with model and weights, which predict accepts without changes. To train it further, replace
the placeholder in the section "data" of the model. If nodes are unsupported, the error lists them all.)",
    R"(graphrun import-onnx net.onnx -o model.safetensors
graphrun show model.safetensors --json > model.json)",
    run_import_onnx};

}  // namespace graphrun::cli
