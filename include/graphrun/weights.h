// weights.h: a model's parameters, and the numbers fitted to its data, as one file: NPZ, which NumPy reads, or
// safetensors, which also has the model inside, so that it can be given in a model file's place (load_model()).
// Contract: read by content, whatever the name; written as safetensors where the name ends with .safetensors, else as
// NPZ. An array for each parameter under its name (f32), and for each input whose values were standardized or scaled
// "x:shift" and "x:scale" (f64, one entry a column; stored = (original - shift) / scale); what else was fitted to the
// training rows, and where they came from (data.md, "Weights files"). The same weights are the same bytes: no time
// and no folder is in them. The model inside is the file that the session's model was read from; one that was built has
// none. Errors: Error of kind input with every mistake of a file at once, kind run when it cannot be written; a file is
// replaced whole or not at all. Leaves to others: starting a model file from such a file, its fitted numbers included
// (LoadOptions::weights).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphrun/output_file.h"
#include "graphrun/session.h"
#include "graphrun/tensor.h"

namespace graphrun {

GRAPHRUN_API void save_weights(Session& session, const std::string& path);

// The same into a file that was opened before the training, so that one which cannot be written is found out then.
GRAPHRUN_API void save_weights(Session& session, OutputFile& file);

// For weights that could not be saved where they should be: into a new NPZ file in $TMPDIR or, where that fails, the
// home folder: $HOME, else that of the system's entry for the user. Its path.
GRAPHRUN_API std::string rescue_weights(Session& session);

// Sets the parameters. Names, shapes, dtypes must be the session's own, the fitted numbers those that its data were
// changed with, and its data split as the file says.
GRAPHRUN_API void load_weights(Session& session, const std::string& path);

// What a file holds, without a model, whoever wrote it: any NPZ or safetensors file.
class GRAPHRUN_API WeightsFile {
 public:
  struct ArrayInfo {
    std::string name, dtype;  // as NumPy or the file calls it where no tensor here is of it
    Shape shape;
  };

  explicit WeightsFile(const std::string& path);  // reads no values
  ~WeightsFile();
  WeightsFile(WeightsFile&&) noexcept;
  WeightsFile& operator=(WeightsFile&&) noexcept;

  const std::vector<ArrayInfo>& entries() const;   // in the file's order
  HostTensor read(const std::string& name) const;  // f32, f64 or i32. Throws Error with the nearest name
  const std::string& provenance() const;           // DataSet::provenance; empty: it is not there

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
