// deployment.h: a model's predictions as plain data, for programs that do without this library: as C, as ONNX; and
// networks of others from ONNX.
// Contract: pure functions of a Session, which stays as it is; the same weights give the same text and bytes. Errors:
// Error of kind input. What cannot be said in the other language is listed whole: every step or node that stands in the
// way, at once. Leaves to others: writing files (output_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/session.h"

namespace graphrun {

// Above Deployment::columns, where it is told.
inline constexpr std::string_view kColumnsBefore =
    "Inputs are columns of a table after these changes: shift and scale, (number - shift) / scale; what fills a gap; "
    "classes";

// What goes into a prediction or comes out of it.
struct DeployedValue {
  std::string name;
  BufferId buffer = kNoBuffer;
  std::optional<Standardization> units;  // the buffer has (log(user's number) - shift) / scale; none: they are equal
};

struct Deployment {
  std::string model;  // its name
  Program program;    // steps one by one, without regions; one of its phases is "predict"
  std::vector<DeployedValue> inputs, outputs;
  std::vector<std::pair<BufferId, HostTensor>> values;  // states that steps read: parameters, constants
  // What the training rows decided of columns of a table before they are an input, "age:standardize = 42.1, 12.9" or
  // "city = Oslo, Rome": no part of what is exported, but told in it, since the inputs are numbers after that.
  std::vector<std::string> columns;
  BufferId row_count = kNoBuffer;  // state that holds the number of samples
  // Samples to try it with, in the user's units: a tensor for each input, and what the session predicts for them.
  std::vector<HostTensor> example_inputs, example_outputs;

  const Phase& phase() const { return program.phases[find_phase(program, "predict")]; }
  const HostTensor* value_of(BufferId buffer) const {  // null: a step or the user gives it
    for (const auto& [id, tensor] : values) {
      if (id == buffer) return &tensor;
    }
    return nullptr;
  }
};

struct DeploymentOptions {
  std::int64_t rows = 1;      // samples of a batch
  bool views = true;          // what shows a part of another value is no step but a strided buffer
  std::int64_t examples = 8;  // samples
};

// Throws Error where there is nothing to predict, or where an output depends on the other rows of its batch.
GRAPHRUN_API Deployment deployment(Session& session, const DeploymentOptions& options = {});

// A C99 file that allocates nothing and needs nothing but math.h (deployment.md). `name` begins the names of its
// functions and macros: letters, digits and _, and no digit first. Of a deployment of one row.
GRAPHRUN_API std::string c_source(const Deployment& deployment, const std::string& name);

// A name for c_source() from any text: "my-net.c" gives "my_net".
GRAPHRUN_API std::string c_name(const std::string& text);

// An ONNX file (IR version 8, opset 17) whose batch is a symbol. Of a deployment without views, of 2 rows or more.
GRAPHRUN_API std::string onnx_model(const Deployment& deployment);

// A network as a model file and its parameters, by name.
struct ImportedModel {
  std::string text;  // model-format.md
  std::vector<std::pair<std::string, HostTensor>> parameters;
};

// Reads an ONNX file of dense layers and activations (deployment.md lists the nodes). Throws Error with every node
// that is not supported.
GRAPHRUN_API ImportedModel import_onnx(const std::string& path);

}  // namespace graphrun
