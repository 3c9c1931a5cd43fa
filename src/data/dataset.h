// dataset.h: builds tensors from the "data" block of a model file: finds, reads, splits and transforms data files.
// Contract: read_data() reports every error to the reader and continues where it can, so the caller ends the pass with
// throw_if_failed(). The result is complete only if nothing was reported. Deterministic for a seed.
// Not here: input declarations (frontend), formula evaluation (formula.h), batches and shuffling (step).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/class_range.h"
#include "base/json_reader.h"
#include "graphrun/model.h"

namespace graphrun {

namespace data {
class Formulas;
}

struct InputDecl {
  std::string name;
  Shape sample;  // shape without the batch dimension
  DType dtype = DType::f32;
  bool is_target = false;
  std::vector<ClassRange> classes = {};  // valid ranges of the values
  bool accepts_unseen = false;           // LoadOptions::accepts_unseen, for a target
};

struct DataOptions {
  std::string model_dir;   // folder of the model file; searched first unless empty
  std::string data_dir;    // --data-dir; searched second unless empty, before the environment's GRAPHRUN_DATA
  std::uint64_t seed = 0;  // for the permutation of "split", and for random tables without a seed of their own
  const data::Formulas* formulas = nullptr;  // required if the block has a formula
  DataUse use = DataUse::values;
  // Fitted values stored with weights (standardizations, statistics, provenance), used instead of fitting to train. The
  // seed of the provenance overrides `seed`.
  const DataSet* weights = nullptr;
  // True for a file other than the model's: a missing-value policy may name absent columns, and no row is dropped.
  bool is_other = false;
  OnProgress on_progress = {};
};

DataSet read_data(json::Reader& reader, const json::Ref& at, std::span<const InputDecl> inputs,
                  const DataOptions& options);

}  // namespace graphrun
