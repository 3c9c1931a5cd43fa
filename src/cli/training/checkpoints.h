// checkpoints.h: --checkpoint-dir and --resume of a training.
// Contract: the constructor finds out whether the folder can be written; begin() loads what the training goes on from,
// and tells it. A checkpoint that cannot be written is told at once and the training goes on; finish() throws when the
// last one could not. Without the flags nothing happens. Leaves to others: files and their names
// (graphrun/checkpoint.h), signals (interrupt.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "graphrun/checkpoint.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class Checkpoints {
 public:
  Checkpoints(const Arguments& arguments, Diagnostics& diagnostics);

  void begin(Session& session);
  void connect(TrainOptions& options);
  void finish();

  // Steps that were done when the training began here; nothing: it does not go on from a checkpoint.
  std::optional<std::uint64_t> resumed() const { return resumed_; }
  bool keeps() const { return folder_.has_value(); }
  CheckpointFolder* folder() { return folder_ ? &*folder_ : nullptr; }

 private:
  void report(const CheckpointInfo& info, const Session& session);

  const Arguments& arguments_;
  Diagnostics& diagnostics_;
  std::optional<CheckpointFolder> folder_;
  std::optional<std::uint64_t> resumed_;
};

}  // namespace graphrun::cli
