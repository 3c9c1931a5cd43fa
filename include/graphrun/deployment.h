// deployment.h: export of a model's predictions as C or ONNX, for programs without this library; import from ONNX.
// Contract: pure functions of a Session, which they leave unchanged; equal weights give equal text and bytes. Errors:
// Error of kind input, which lists every step or node that the other format does not support. Not here: writing files
// (output_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/session.h"

namespace graphrun {

// Heading above Deployment::columns.
inline constexpr std::string_view kColumnsBefore =
    "Inputs are table columns after preprocessing: standardization, (number - shift) / scale; imputation; class "
    "indices";

// A column of the model's table as an input (one value per row), or the class of an output.
struct DeployedColumn {
  std::string text = {};                     // meaning of a value, for a comment
  std::vector<std::string> categories = {};  // if not empty, the value is an i32 code: an index, or -1 for none
  bool other = false;                        // the last category stands for all other values
};

// Input or output of a prediction.
struct DeployedValue {
  std::string name;
  BufferId buffer = kNoBuffer;
  std::optional<Standardization> units;  // buffer = (log(original) - shift) / scale; nullopt: original units
  std::optional<DeployedColumn> column = {};
};

struct Deployment {
  std::string model;  // name of the model
  Program program;    // single steps, without regions; has a phase "predict"
  std::vector<DeployedValue> inputs, outputs;
  std::vector<std::pair<BufferId, HostTensor>> values;  // states that steps read: parameters, constants
  // Statistics of table columns that the inputs do not apply, "age:standardize = 42.1, 12.9". Only a model without a
  // model file has some (its inputs are numbers after these transforms); documented in the exported text.
  std::vector<std::string> columns;
  BufferId row_count = kNoBuffer;  // state with the number of samples
  // Sample inputs in original units, one tensor per input, and the session's predictions for them.
  std::vector<HostTensor> example_inputs, example_outputs;

  const Phase& phase() const { return program.phases[find_phase(program, "predict")]; }
  const HostTensor* value_of(BufferId buffer) const {  // null: computed by a step or given by the user
    for (const auto& [id, tensor] : values) {
      if (id == buffer) return &tensor;
    }
    return nullptr;
  }
};

struct DeploymentOptions {
  std::int64_t rows = 1;      // samples of a batch
  bool views = true;          // slices, transposes and broadcasts are strided buffers instead of steps
  std::int64_t examples = 8;  // samples
};

// Throws Error if there is nothing to predict, or if an output depends on more than its own row of the batch.
GRAPHRUN_API Deployment deployment(Session& session, const DeploymentOptions& options = {});

// A C99 file that allocates nothing and needs only math.h (deployment.md). `name` is the prefix of its functions and
// macros: letters, digits and _, not starting with a digit. Requires a deployment of one row.
GRAPHRUN_API std::string c_source(const Deployment& deployment, const std::string& name);

// Identifier for c_source() from any text: "my-net.c" gives "my_net".
GRAPHRUN_API std::string c_name(const std::string& text);

// An ONNX file (IR version 8, opset 17) with a symbolic batch. Requires a deployment without views, of at least 2 rows.
GRAPHRUN_API std::string onnx_model(const Deployment& deployment);

// A network as a model file, and its parameters by name.
struct ImportedModel {
  std::string text;  // model-format.md
  std::vector<std::pair<std::string, HostTensor>> parameters;
};

// Reads an ONNX file (deployment.md lists the nodes) and its external data. Throws Error with every node that is not
// supported.
GRAPHRUN_API ImportedModel import_onnx(const std::string& path);

}  // namespace graphrun
