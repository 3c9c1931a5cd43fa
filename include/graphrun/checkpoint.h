// checkpoint.h: the state of a training run as a file, to resume after a crash.
// Contract: a checkpoint is a safetensors file. It holds the weights and their model (weights.h), so it can be
// evaluated and used to predict. Names that begin with "checkpoint:" hold optimizer slots, counters and the sums of the
// current epoch; a checksum is last. Data position, schedule and random numbers follow from the step counter and the
// seed. A resumed run is bitwise identical to an uninterrupted one on the same executor. Files contain no time, host or
// path, and are complete on disk before they get their name. Calls belong to the session's thread; callbacks of train()
// may save, but not load. Errors: kind input for a damaged file or another training (one diagnostic per difference),
// kind run if the file cannot be written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "graphrun/error.h"
#include "graphrun/session.h"

namespace graphrun {

struct CheckpointInfo {
  std::string path;
  std::uint64_t step = 0;                       // finished steps
  std::int64_t epoch = 0;                       // finished epochs
  std::uint64_t best_step = 0;                  // 0: no evaluation yet
  std::string executor, model_hash, plan_hash;  // those of the run that wrote it
  bool same_plan = true;                        // the plans match: resuming is bitwise identical
};

// Hashes (16 hex digits). model_hash() covers everything that determines training except the number of epochs;
// plan_hash() covers everything that the executor sees.
GRAPHRUN_API std::string model_hash(const Model& model);
GRAPHRUN_API std::string plan_hash(const Program& program);

// Replaces an existing file atomically. Throws Error (kind run), also if a parameter is not finite.
GRAPHRUN_API void save_checkpoint(Session& session, const std::string& path);

// Sets all states; the next train() resumes there, up to the model's number of epochs. The executor, that number,
// metrics, reporting and evaluation intervals may differ. Throws Error also for a checkpoint beyond that number.
GRAPHRUN_API CheckpointInfo load_checkpoint(Session& session, const std::string& path);

// Intervals between checkpoints, in addition to the final one. All 0: each epoch, or each second if there are more than
// 200 epochs.
struct CheckpointEvery {
  std::uint64_t epochs = 0, steps = 0;
  double seconds = 0;
};

// Checkpoints of one training run in a folder: the newest `keep` as checkpoint-000000001200.safetensors (by step), and
// best.safetensors, the best by early_stopping's monitor or else by validation loss. One process writes to a folder at
// a time. save() and the callbacks of train() allocate nothing unless they fail.
class GRAPHRUN_API CheckpointFolder {
 public:
  // Creates the folder if needed. Throws Error (kind input) if it is not writable or another process writes there.
  explicit CheckpointFolder(const std::string& path, const CheckpointEvery& every = {}, int keep = 3);
  ~CheckpointFolder();
  CheckpointFolder(CheckpointFolder&&) noexcept;
  CheckpointFolder& operator=(CheckpointFolder&&) noexcept;

  // Starts a new training run. Throws Error (kind input) if the folder has checkpoints.
  void begin(Session& session);
  // Loads `from` or, if empty, the folder's newest intact checkpoint; calls `damaged` for each damaged one. Returns
  // nullopt if there is none: training starts from the beginning.
  std::optional<CheckpointInfo> resume(Session& session, const std::string& from = {},
                                       const std::function<void(const Error&)>& damaged = {});

  // Makes train() write checkpoints. If a write fails, `failed` is called once until a write succeeds; training
  // continues. Both must outlive the training run.
  void connect(TrainOptions& options, std::function<void(const Error&)> failed = {});
  // Requests a checkpoint at the end of the current step. Safe from any thread or signal handler.
  void request() noexcept;
  // Saves the current state, unless it is saved already. Throws Error (kind run).
  void save();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
