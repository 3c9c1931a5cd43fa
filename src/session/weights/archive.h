// archive.h: tensors and notes of a weights file, independent of its format.
// Contract: read by content, whatever the name: safetensors (data/safetensors.h), else NPZ. Written by extension:
// .safetensors, else NPZ, which cannot hold a model. Equal weights give equal bytes. Throws Error. Not here: meaning of
// the names (weights_file.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/formats/safetensors.h"
#include "graphrun/tensor.h"

namespace graphrun {

// Each is empty if absent.
struct WeightsNotes {
  std::string model;       // canonical_model()
  std::string provenance;  // DataSet::provenance
  std::string math;        // name_of() a math mode that is not exact
  std::string precision;   // "fp64" if the parameters were trained in it
};

class Archive {
 public:
  virtual ~Archive() = default;
  virtual const std::vector<std::string>& names() const = 0;         // tensor names in file order
  virtual data::TensorInfo info(const std::string& name) const = 0;  // does not read the values
  virtual data::Array read(const std::string& name) const = 0;
  virtual const WeightsNotes& notes() const = 0;
};

bool is_safetensors_name(const std::string& path);

// Detects safetensors by content; if the bytes are not those of a weights file, the name decides.
bool is_safetensors(const std::string& path, std::string_view bytes);

std::shared_ptr<const Archive> open_archive(const std::string& path, std::shared_ptr<const std::string> bytes);

// Converts notes to safetensors metadata.
data::Texts safetensors_texts(const WeightsNotes& notes);

std::string archive_bytes(const std::string& path, std::vector<std::pair<std::string, HostTensor>> tensors,
                          const WeightsNotes& notes);

}  // namespace graphrun
