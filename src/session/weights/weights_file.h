// weights_file.h: a weights file (graphrun/weights.h) as it was read, and what of it does not fit a model.
// Contract: read_weights() reads names, types and shapes, and throws Error for a file that cannot be read; misfits()
// holds them against a model before parameters_of() reads any values.
#pragma once

#include <memory>
#include <span>
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
  std::vector<std::pair<std::string, data::TensorInfo>> parameters;
  std::vector<std::string> ignored;  // counters of PyTorch's batch norm, which no model has
  DataSet data;                      // what was fitted to it and where it came from, read at once; no rows
};

Weights read_weights(const std::string& path);
Weights read_weights(const LoadOptions& options);  // of options.weights, a pipe once only

// One diagnostic for each parameter that the file lacks, has in another shape or dtype, or has and the model has not.
std::vector<Diagnostic> misfits(const Weights& weights, const GraphBuilder& graph);

// The parameters' values, in the file's order; misfits() found nothing. Throws Error that names every parameter with a
// value that is not finite.
std::vector<std::pair<std::string, HostTensor>> parameters_of(const Weights& weights);

// Of a checkpoint, which is such a file (session/checkpoint), what is no weight: names that begin so.
inline constexpr std::string_view kCheckpointPrefix = "checkpoint:";

// What a file holds beside the parameters: the numbers fitted to the data, and the notes.
std::vector<std::pair<std::string, HostTensor>> fitted_arrays(const DataSet& data);
WeightsNotes notes_of(const Model& model, MathMode math, bool with_model);

// What is wrong with f32 values that are to be a parameter's: "'W' at [2, 0] is nan"; empty: nothing.
std::string not_finite(std::string_view name, const HostTensor& tensor);

}  // namespace graphrun
