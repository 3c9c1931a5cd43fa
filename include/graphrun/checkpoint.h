// checkpoint.h: the state of a training as a file, so that it can go on after a crash as if nothing had happened.
// Contract: a checkpoint is a safetensors file: the weights with their model inside (weights.h: it can be evaluated and
// predicted with), and beside them, under names that begin with "checkpoint:", the optimizer's slots, all counters and
// the sums of the epoch under way; a checksum is last. Position in the data, schedule and random numbers follow from
// the step counter and the seed. A training that goes on from one gives the same bits as one that was never
// interrupted, on the same executor, whatever it is; on another executor it goes on with that one's rounding. The bytes
// hold no time, host or path. Files are complete and on the disk before they have their name. Calls belong to the
// session's thread, between steps: outside of train() or in its callbacks. Errors: Error of kind input for a file that
// is damaged, or is of another training (one diagnostic for each difference), kind run for one that cannot be written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/session.h"

namespace graphrun {

struct CheckpointInfo {
  std::string path;
  std::uint64_t step = 0;                       // finished steps
  std::int64_t epoch = 0;                       // finished epochs
  std::uint64_t best_step = 0;                  // 0: there was no evaluation
  std::string executor, model_hash, plan_hash;  // of the training that wrote it
  bool same_plan = true;                        // as the session's: then it goes on bit by bit
};

// Of all that decides how the model is trained but the number of epochs, and of all that an executor sees of it: equal
// for equal ones, 16 hex digits.
GRAPHRUN_API std::string model_hash(const Model& model);
GRAPHRUN_API std::string plan_hash(const Program& program);

// Replaces an old file whole or not at all. Throws Error (kind run) also when a parameter is not finite.
GRAPHRUN_API void save_checkpoint(Session& session, const std::string& path);

// Sets all states; the next train() goes on from there to the model's number of epochs. The model may differ in that
// number, in what it reports and evaluates when, and in its metrics; the executor may be another. Throws Error also for
// a checkpoint beyond that number.
GRAPHRUN_API CheckpointInfo load_checkpoint(Session& session, const std::string& path);

// When a folder gets a checkpoint beside the one at the end; all 0: after each epoch, or each second where there are
// more than 200 epochs.
struct CheckpointEvery {
  std::uint64_t epochs = 0, steps = 0;
  double seconds = 0;
};

// Checkpoints of one training in a folder of their own: checkpoint-000000001200.safetensors by their step, the newest
// `keep` of them, and best.safetensors: that after the best evaluation, by what early_stopping monitors and else by the
// validation loss. One process writes to a folder at a time. save() and what train() calls allocate nothing, unless
// they fail.
class GRAPHRUN_API CheckpointFolder {
 public:
  // Makes the folder where there is none. Throws Error (kind input): no file can be written there, or another process
  // writes there.
  explicit CheckpointFolder(const std::string& path, const CheckpointEvery& every = {}, int keep = 3);
  ~CheckpointFolder();
  CheckpointFolder(CheckpointFolder&&) noexcept;
  CheckpointFolder& operator=(CheckpointFolder&&) noexcept;

  // For a training from its beginning. Throws Error (kind input) when there are checkpoints already.
  void begin(Session& session);
  // Loads `from`, or where that is empty the newest checkpoint of the folder that is whole; those that are not are told
  // to `damaged`. Nothing: there is none, and the training begins at its beginning.
  std::optional<CheckpointInfo> resume(Session& session, const std::string& from = {},
                                       const std::function<void(const Error&)>& damaged = {});

  // Has train() write checkpoints. `failed` is told when one cannot be written, and not again before one was; the
  // training goes on. Both must outlive the training.
  void connect(TrainOptions& options, std::function<void(const Error&)> failed = {});
  // One at the next boundary, wherever that is. Any thread or signal handler may call.
  void request() noexcept;
  // One of the state as it is now, unless it is there. Throws Error (kind run).
  void save();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
