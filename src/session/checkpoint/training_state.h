// training_state.h: all that a training needs to go on, as the bytes of a checkpoint (graphrun/checkpoint.h): a
// safetensors file of the weights with the model inside, and beside them slots, counters and how far train() is.
// Contract: the constructor finds out what there is to save, and the header, which does not change during a run;
// write() allocates nothing. A file is equal for equal states: no time, host, path or history is in it. restore()
// changes nothing unless the whole file fits. Leaves to others: where files lie (checkpoint_folder.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/safetensors.h"
#include "graphrun/checkpoint.h"
#include "session/checkpoint/config_fingerprint.h"
#include "session/checkpoint/session_access.h"

namespace graphrun {

// The code of the Error for a checkpoint that another version wrote, and that is whole.
constexpr std::string_view kOtherFormat = "checkpoint.format";

// A file that is a checkpoint and whole; throws Error (kind input) for another. What it is of is not looked at.
class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path);

  const std::string& path() const { return path_; }
  const data::Safetensors& contents() const { return contents_; }

 private:
  std::string path_;
  std::shared_ptr<const std::string> bytes_;
  data::Safetensors contents_;
};

class TrainingState {
 public:
  explicit TrainingState(SessionAccess::Impl& session);

  // False, and `sink` was told nothing: a parameter is not finite.
  bool write(const std::function<void(std::string_view)>& sink);
  CheckpointInfo restore(const CheckpointFile& file);

  std::uint64_t step() const;                                             // finished steps of training
  bool is_reported() const { return session_.progress.unreported == 0; }  // what is due after that step
  std::uint64_t steps_of_epoch() const { return session_.steps_of_epoch(); }
  std::int64_t epochs() const { return session_.model.train.epochs; }

 private:
  struct StoredValue {
    std::string name;  // in the file
    TensorType type;
    BufferId buffer = kNoBuffer;  // kNoBuffer: it lies on the host
    std::span<std::byte> host = {};
    bool is_state = true;  // false: written for who reads the weights
  };
  void add_states(BufferKind kind);
  void add_progress();
  void add_constant(std::string name, HostTensor value);
  void read(const StoredValue& part, std::uint64_t first, std::span<std::byte> to) const;
  void check_parts(const CheckpointFile& file) const;

  SessionAccess::Impl& session_;
  std::vector<ConfigEntry> config_;
  std::vector<HostTensor> constants_;
  std::vector<StoredValue> parts_;  // in the order of the file's values; the last one is the checksum
  std::string header_;
  std::vector<std::byte> piece_;
};

}  // namespace graphrun
