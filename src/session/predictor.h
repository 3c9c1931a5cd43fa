// predictor.h: predicts with a loaded model, batch by batch; inputs and outputs are in original units.
// Contract: that of Session::predict(). Errors name the input and the row.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/class_range.h"
#include "data/sources/array_rows.h"
#include "session/loaded_model.h"

namespace graphrun {

// Samples of a prediction input.
struct GivenRows {
  DType dtype;
  std::span<const std::byte> bytes;
  std::int64_t samples;
  const Standardization* fitted;  // null: not standardized
};
inline GivenRows given_rows(const HostTensor& rows, const Standardization* fitted) {
  return {rows.dtype(), rows.bytes(), rows.shape()[0], fitted};
}

class Predictor {
 public:
  using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

  explicit Predictor(LoadedModel& loaded);

  // Applies "transform" to rows if it changes columns. f64 rows of the model's own width come from an InputReader and
  // are already transformed.
  NamedTensors transformed(const NamedTensors& inputs);
  // Returns the first `count` outputs of transformed rows.
  NamedTensors predict(const NamedTensors& inputs, std::size_t count);
  // Allocates nothing, unless "transform" changes columns or it throws.
  void predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
               DType floats);
  std::vector<std::pair<std::string, TensorType>> inputs() const;
  std::vector<std::pair<std::string, TensorType>> outputs() const;

  // Runs the prediction phase on all rows. Calls see(rows in the batch, first `count` outputs in the model's units)
  // until it returns false; then returns false.
  bool each_batch(const StepPhase& phase, std::span<const GivenRows> given, std::size_t count,
                  const std::function<bool(std::int64_t, std::span<const HostTensor>)>& see);
  const std::vector<ClassRange>& classes() const { return classes_; }  // valid classes of the inputs
  const StepPhase& predicting() const;  // throws Error if there are no outputs, or no inputs
  const TensorType& type_of_output(const StepPhase& phase, std::size_t i) const;  // throws Error if it has no rows

 private:
  HostTensor transformed(std::string_view input, const HostTensor& rows);
  std::int64_t columns_of(std::string_view input) const {  // 0: "transform" changes no columns
    return loaded_.model.data.arrays ? loaded_.model.data.arrays->width(input) : 0;
  }
  std::vector<GivenRows> in_order(const StepPhase& phase, const NamedTensors& given) const;
  void write_batch(const StepPhase& phase, std::span<const GivenRows> given, std::int64_t first, std::int64_t count);
  // Runs the phase on all rows. Writes each of the first outputs, in original units, to a span of exactly its size.
  void predict_into(const StepPhase& phase, std::span<const GivenRows> given,
                    std::span<const std::span<std::byte>> outputs);
  std::uint64_t sample_bytes(const StepPhase& phase, ir::NodeId node) const;  // for an input or output
  const StepPhase& prediction() const;                                        // throws Error if there are no outputs
  void check_classes_of(std::string_view input, const GivenRows& given, std::size_t index) const;
  const TensorType& type_of(ir::NodeId node) const { return loaded_.program().buffers[loaded_.buffer(node)].type; }

  LoadedModel& loaded_;
  std::vector<ClassRange> classes_;
  std::optional<data::FittedStatistics> array_fit_;  // statistics of the model's data; fitted on first use
  std::vector<HostTensor> transformed_rows_;         // for predict() into spans
  std::vector<HostTensor> batch_;                    // per input: rows to write to the arena
  std::vector<GivenRows> given_;                     // per input: rows given to predict() into spans
};

}  // namespace graphrun
