// weights_file.h: a parsed weights file (graphrun/weights.h), and its mismatches with a model.
// Contract: read_weights() reads names, types and shapes, and throws Error for an unreadable file. misfits() compares
// them with a model before parameters_of() reads values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/math_mode.h"
#include "graphrun/model.h"
#include "session/weights/archive.h"

namespace graphrun {

struct Weights {
  std::string path;
  std::shared_ptr<const Archive> file;
  struct Tensor {
    std::string name;  // name of the parameter
    data::TensorInfo info;
    std::string source = name;  // name in the file
    bool is_transposed = false;
  };
  std::vector<Tensor> parameters;
  std::vector<std::string> warnings;
  DataSet data;  // fitted statistics and provenance, read immediately; no rows
};

Weights read_weights(const std::string& path);
Weights read_weights(const LoadOptions& options);  // reads options.weights; a pipe only once

// Names the tensors of other programs like the parameters of the model: "0.weight" is "_0.weight", and the weight and
// bias of PyTorch's Linear layer "h" are "h.W", transposed, and "h.b". Names of parameters stay.
// Warns of parameters that the precision rounds.
void match_names(Weights& weights, const GraphBuilder& graph, Precision precision);

DType parameter_type(Precision precision);

// One diagnostic per parameter that is missing, unknown to the model, or different in shape or dtype, and one for a
// file of an fp64 training whose model is not in fp64.
std::vector<Diagnostic> misfits(const Weights& weights, const GraphBuilder& graph, Precision precision);

// Parameter values in file order. Requires that misfits() found nothing. Throws Error that names every parameter with a
// non-finite value.
std::vector<std::pair<std::string, HostTensor>> parameters_of(const Weights& weights, Precision precision);

// Prefix of the names in a checkpoint (session/checkpoint) that are not weights.
inline constexpr std::string_view kCheckpointPrefix = "checkpoint:";

// Non-parameter contents of a weights file: fitted statistics and notes.
std::vector<std::pair<std::string, HostTensor>> fitted_arrays(const DataSet& data);
WeightsNotes notes_of(const Model& model, MathMode math, bool with_model);

// Describes a non-finite parameter value: "'W' at [2, 0] is nan"; empty if all are finite.
std::string not_finite(std::string_view name, const HostTensor& tensor);

}  // namespace graphrun
