// dataset.h: from the "data" block of a model file to tensors: files found and read, split, transformed.
// Contract: read_data() reports every mistake to the reader and goes on where it can, so that the caller ends the pass
// with throw_if_failed(); what it returns is complete only when nothing was reported. Deterministic for a seed.
// Leaves to others: what the inputs are (the frontend declares them), computing formulas (formula.h), and batches and
// shuffling (a step does them).
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
  Shape sample;  // the shape without the batch
  DType dtype = DType::f32;
  bool is_target = false;
  std::vector<ClassRange> classes = {};  // what its values must be within
};

struct DataOptions {
  std::string model_dir;   // where the model file lies; searched first when not empty
  std::string data_dir;    // --data-dir; searched second when not empty; then the environment's GRAPHRUN_DATA
  std::uint64_t seed = 0;  // of the permutation of "split", and of random tables that have none of their own
  const data::Formulas* formulas = nullptr;  // needed where the block has one
  DataUse use = DataUse::values;
  // What came with weights, in place of what would be fitted to train: standardizations, fitted numbers, origin. The
  // origin's seed takes the place of `seed`.
  const DataSet* weights = nullptr;
  // A file that is not the model's: a policy for missing values may be of columns that it lacks, and no row is left
  // out.
  bool is_other = false;
  OnProgress on_progress = {};
};

DataSet read_data(json::Reader& reader, const json::Ref& at, std::span<const InputDecl> inputs,
                  const DataOptions& options);

}  // namespace graphrun
