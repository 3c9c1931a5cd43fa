// inspection.h: intermediate values of a model over a batch of rows, and the gradients of its loss.
// Contract: the constructor plans, loads and runs the first batch of a split once, with the parameters that the model
// was loaded with (LoadOptions::weights) or its initial ones; nothing is trained. Values are those of evaluation and
// prediction: dropout passes everything on, and inputs are as the graph sees them, after the data's transforms. Every
// value is kept, each computed by a step of its own, so memory grows with the batch. Throws Error of kind input (model,
// options) or device (executor not available). An Inspection belongs to one thread at a time.
// Leaves to others: values of a training step as it runs (value_after() in verify.h), statistics (cli).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/session.h"
#include "graphrun/tensor.h"

namespace graphrun {

// "auto" is not supported as executor. fuse and profiling are ignored.
struct InspectionOptions : SessionOptions {
  std::string split = {};  // split of the batch; empty: "train", or the first split
  bool gradients = false;
  // Expression to differentiate ("y_hat", "mean(slice(logits, axis=1, start=3, stop=4))"), summed over all elements if
  // not a scalar. Empty: the loss.
  std::string of = {};
};

class GRAPHRUN_API Inspection {
 public:
  enum class Kind : std::uint8_t { input, parameter, value, gradient };
  struct NamedValue {
    std::string name;  // "W:gradient" for a gradient
    Kind kind = Kind::value;
    TensorType type;  // for this batch: all extents are numbers
  };

  explicit Inspection(Model model, const InspectionOptions& options = {});
  ~Inspection();
  Inspection(Inspection&&) noexcept;
  Inspection& operator=(Inspection&&) noexcept;

  // Inputs, parameters and values in graph order, then gradients of the floats among them that `of` depends on.
  const std::vector<NamedValue>& entries() const;
  HostTensor read(std::string_view name) const;  // throws Error with the nearest name
  // Seconds to compute each entry: the sum of its steps, each the fastest of several rounds, within about `within`
  // seconds in total. A step without a name counts with the first entry that needs it.
  std::vector<double> times(double within);
  const std::string& split() const;
  std::int64_t rows() const;
  const std::string& of() const;  // differentiated value, or the name of the loss; empty: no gradients

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
