// weights.h: a model's parameters and fitted statistics in one file: NPZ, which NumPy reads, or safetensors, which also
// contains the model and can replace a model file (load_model()).
// Contract: the format is detected from the content; safetensors is written if the name ends with .safetensors, else
// NPZ. One array per parameter under its name (f32). Standardized or scaled inputs add "x:shift" and "x:scale" (f64,
// one entry per column; stored = (original - shift) / scale); further entries are other fitted statistics and their
// provenance (data.md, "Weights files"). Equal weights give equal bytes: no time or folder. The model inside is the
// session's model file; a model built in code has none. Errors: kind input with up to 50 errors of a file, kind run if
// it cannot be written; files are replaced atomically. Not here: starting a model from weights (LoadOptions::weights).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphrun/output_file.h"
#include "graphrun/session.h"
#include "graphrun/tensor.h"

namespace graphrun {

GRAPHRUN_API void save_weights(Session& session, const std::string& path);

// The same, into a file opened before training, so that an unwritable path fails early.
GRAPHRUN_API void save_weights(Session& session, OutputFile& file);

// Saves weights whose own path failed: to a new NPZ file in $TMPDIR or, if that fails, the home folder ($HOME, else the
// user's entry in the system). Returns its path.
GRAPHRUN_API std::string rescue_weights(Session& session);

// Sets the parameters. Names, shapes, dtypes, fitted statistics and data split must match the session's.
GRAPHRUN_API void load_weights(Session& session, const std::string& path);

// Content of any NPZ or safetensors file; needs no model.
class GRAPHRUN_API WeightsFile {
 public:
  struct ArrayInfo {
    std::string name, dtype;  // as named by NumPy or the file if no DType matches
    Shape shape;
  };

  explicit WeightsFile(const std::string& path);  // reads no values
  ~WeightsFile();
  WeightsFile(WeightsFile&&) noexcept;
  WeightsFile& operator=(WeightsFile&&) noexcept;

  const std::vector<ArrayInfo>& entries() const;   // in the file's order
  HostTensor read(const std::string& name) const;  // f32, f64 or i32. Throws Error with the nearest name
  const std::string& provenance() const;           // DataSet::provenance; empty: not in the file

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
