// checkpoints.h: --checkpoint-dir and --resume of a training.
// Contract: the constructor checks that the folder is writable; begin() loads and reports the checkpoint to resume
// from. If a checkpoint cannot be written, warns and continues training; finish() throws if the last one failed.
// Without the flags, does nothing. Not handled here: files and their names (graphrun/checkpoint.h), signals
// (interrupt.h).
#pragma once

#include <cstdint>
#include <optional>

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

  // Number of steps already done by the checkpoint; empty if the training does not resume.
  std::optional<std::uint64_t> resumed() const { return resumed_; }
  std::int64_t resumed_epoch() const { return resumed_epoch_; }  // finished epochs, otherwise 0
  bool keeps() const { return folder_.has_value(); }
  CheckpointFolder* folder() { return folder_ ? &*folder_ : nullptr; }

 private:
  void report(const CheckpointInfo& info, const Session& session);

  const Arguments& arguments_;
  Diagnostics& diagnostics_;
  std::optional<CheckpointFolder> folder_;
  std::optional<std::uint64_t> resumed_;
  std::int64_t resumed_epoch_ = 0;
};

}  // namespace graphrun::cli
