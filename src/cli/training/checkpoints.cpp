#include "cli/training/checkpoints.h"

#include <fmt/format.h>

#include "graphrun/error.h"

namespace graphrun::cli {

Checkpoints::Checkpoints(const Arguments& arguments, Diagnostics& diagnostics)
    : arguments_(arguments), diagnostics_(diagnostics) {
  if (!arguments.checkpoint_dir.empty())
    folder_.emplace(arguments.checkpoint_dir, arguments.checkpoint_every, arguments.checkpoint_keep.value_or(3));
}

void Checkpoints::begin(Session& session) {
  const std::string& from = arguments_.resume;
  std::optional<CheckpointInfo> info;
  if (from.empty()) {
    if (folder_) folder_->begin(session);
  } else if (!folder_) {
    info = load_checkpoint(session, from);
  } else {
    info = folder_->resume(session, from == "auto" ? "" : from, [&](const Error& error) {
      diagnostics_.warn(fmt::format("{}; trying an older one", error.diagnostics().front().message));
    });
  }
  if (info)
    report(*info, session);
  else if (!from.empty())
    diagnostics_.note(
        fmt::format("'{}' has no checkpoint: training starts from the beginning", arguments_.checkpoint_dir));
}

void Checkpoints::report(const CheckpointInfo& info, const Session& session) {
  resumed_ = info.step;
  resumed_epoch_ = info.epoch;
  diagnostics_.note(fmt::format("resuming from '{}': step {}, epoch {} of {}", info.path, info.step, info.epoch,
                                session.model().train.epochs));
  if (!info.same_plan)
    diagnostics_.note(fmt::format(
        "the checkpoint was written with another plan (executor {}): rounding may differ from here on", info.executor));
}

void Checkpoints::connect(TrainOptions& options) {
  if (!folder_) return;
  folder_->connect(options, [&](const Error& error) {
    diagnostics_.warn(fmt::format("{}; training continues", error.diagnostics().front().message));
  });
}

void Checkpoints::finish() {
  if (folder_) folder_->save();
}

}  // namespace graphrun::cli
