// replay.h: what the page needs to draw a small network at any step: layers, weights of each step, rows of the data.
// Contract: has no weights for models in fp64 or of more than kMaxElements parameters. Weights are f32, little-endian,
// in base64, one parameter after the other. Rows are as the network sees them, after all transforms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class Replay {
 public:
  explicit Replay(const Session& session);

  bool empty() const { return parameters_.empty(); }
  // {"step": ..., "epoch": ..., "weights": "..."}, of the session's present weights.
  std::string frame(Session& session, std::uint64_t step, double epoch);
  // Members "layers", "parameters" and "rows" of a JSON object; none if empty().
  void write(JsonWriter& json, const Session& session) const;

 private:
  static constexpr std::size_t kMaxElements = 4000;
  // In each split; wider rows are not sent. A prime number does not repeat the columns of a grid.
  static constexpr std::int64_t kMaxRows = 293, kMaxWidth = 8;

  std::vector<std::string> parameters_;
  std::vector<ValueId> ids_;
  std::vector<std::byte> bytes_;
};

}  // namespace graphrun::cli
