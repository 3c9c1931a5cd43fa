// training_state.h: complete training state as the bytes of a checkpoint (graphrun/checkpoint.h): a safetensors file
// with weights, model, slots, counters and the progress of train().
// Contract: the constructor determines the contents and the header, which are fixed during a run; write() allocates
// nothing. Equal states give equal files: no time, host, path or history. restore() changes nothing unless the whole
// file fits. Not here: file locations (checkpoint_folder.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/safetensors.h"
#include "graphrun/checkpoint.h"
#include "session/checkpoint/config_fingerprint.h"
#include "session/session_access.h"

namespace graphrun {

// Error code for an intact checkpoint written by another version.
constexpr std::string_view kOtherFormat = "checkpoint.format";

// An intact checkpoint file; throws Error (kind input) for any other file. Does not check the model.
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

  // Returns false without calling `sink` if a parameter is not finite.
  bool write(const std::function<void(std::string_view)>& sink);
  CheckpointInfo restore(const CheckpointFile& file);

  std::uint64_t step() const;                                             // finished training steps
  bool is_reported() const { return trainer_.progress.unreported == 0; }  // reports due after that step
  std::uint64_t steps_of_epoch() const { return loaded_.steps_of_epoch(); }
  std::int64_t epochs() const { return loaded_.model.train.epochs; }

 private:
  struct StoredValue {
    std::string name;  // name in the file
    TensorType type;
    BufferId buffer = kNoBuffer;  // kNoBuffer: stored on the host
    std::span<std::byte> host = {};
    bool is_state = true;  // false: written only for readers of the weights
  };
  void add_states(BufferKind kind);
  void add_progress();
  void add_constant(std::string name, HostTensor value);
  void read(const StoredValue& part, std::uint64_t first, std::span<std::byte> to) const;
  void check_parts(const CheckpointFile& file) const;

  LoadedModel& loaded_;
  TrainerState& trainer_;
  std::vector<ConfigEntry> config_;
  std::vector<HostTensor> constants_;
  std::vector<StoredValue> parts_;  // in file order; the last one is the checksum
  std::string header_;
  std::vector<std::byte> piece_;
};

}  // namespace graphrun
