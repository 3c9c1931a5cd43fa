// archive.h: the tensors of a weights file and what stands beside them, whatever the file's format.
// Contract: read by content, whatever the name: safetensors (data/safetensors.h), else NPZ; written by the name's
// extension: .safetensors, else NPZ, which holds no model. Equal weights are equal bytes. Throws Error. Leaves to
// others: what the names mean (weights_file.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/safetensors.h"
#include "graphrun/tensor.h"

namespace graphrun {

// Each empty where it is not there.
struct WeightsNotes {
  std::string model;       // canonical_model()
  std::string provenance;  // DataSet::provenance
  std::string math;        // name_of() what is not exact
};

class Archive {
 public:
  virtual ~Archive() = default;
  virtual const std::vector<std::string>& names() const = 0;         // of the tensors, in the file's order
  virtual data::TensorInfo info(const std::string& name) const = 0;  // without reading the values
  virtual data::Array read(const std::string& name) const = 0;
  virtual const WeightsNotes& notes() const = 0;
};

bool is_safetensors_name(const std::string& path);

// Whether these are the bytes of such a file; the name decides where they begin as those of no weights.
bool is_safetensors(const std::string& path, std::string_view bytes);

std::shared_ptr<const Archive> open_archive(const std::string& path, std::shared_ptr<const std::string> bytes);

// The notes as a safetensors file has them.
data::Texts safetensors_texts(const WeightsNotes& notes);

std::string archive_bytes(const std::string& path, std::vector<std::pair<std::string, HostTensor>> tensors,
                          const WeightsNotes& notes);

}  // namespace graphrun
