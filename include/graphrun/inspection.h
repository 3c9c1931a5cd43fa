// inspection.h: what is inside a model: its named values over a batch of rows, and the gradients of its loss.
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

// executor: "auto" is refused. fuse and profiling mean nothing here.
struct InspectionOptions : SessionOptions {
  std::string split = {};  // whose first rows, as many as the model's batch has; empty: "train", or the first there is
  bool gradients = false;
  // What they are of: an expression over the model's values ("y_hat", "mean(slice(logits, axis=1, start=3, stop=4))"),
  // summed over all of its elements where it is no scalar. Empty: the loss.
  std::string of = {};
};

class GRAPHRUN_API Inspection {
 public:
  enum class Kind : std::uint8_t { input, parameter, value, gradient };
  struct NamedValue {
    std::string name;  // of a gradient "W:gradient"
    Kind kind = Kind::value;
    TensorType type;  // of this batch: numbers throughout
  };

  explicit Inspection(Model model, const InspectionOptions& options = {});
  ~Inspection();
  Inspection(Inspection&&) noexcept;
  Inspection& operator=(Inspection&&) noexcept;

  // Inputs, parameters and values as the graph has them, then the gradient of each float among them that `of` depends
  // on.
  const std::vector<NamedValue>& entries() const;
  HostTensor read(std::string_view name) const;  // throws Error with the nearest name
  // How long it takes to compute each entry, in seconds: its steps one by one, on the executor, each the fastest of
  // some rounds within about that time in all. A step without a name counts with the first entry that needs it.
  std::vector<double> times(double within);
  const std::string& split() const;
  std::int64_t rows() const;
  const std::string& of() const;  // what the gradients are of, the loss by its name; empty: there are none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
