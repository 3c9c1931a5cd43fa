// session.h: plan a model, load it on an executor, train, evaluate, predict.
// Contract: the constructor plans and allocates; afterwards a step allocates nothing. All calls belong to one thread at
// a time, but for cancel(), which any thread or signal handler may call. A Session owns its Model. Errors: Error of
// kind input (model, options), device (executor not available), run (a loss that is not finite).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/executor.h"
#include "graphrun/model.h"

namespace graphrun {

struct SessionOptions {
  std::string executor = "cpu";
  std::string target;                         // name of a row of targets(); empty: the executor's default
  std::shared_ptr<Executor> custom_executor;  // used instead of a name when set
  bool passes = true;                         // false: the graph runs as it was built
  int threads = 0;  // of the cpu executor; 0: the environment's GRAPHRUN_THREADS, else the cores there are
};

struct Metrics {
  double loss = 0;
  std::vector<std::pair<std::string, double>> values;  // in the model's order
};

struct Report {
  std::int64_t epoch = 0;  // finished epochs
  std::int64_t epochs = 0;
  double loss = 0;  // mean over the samples of the epoch
  std::optional<Metrics> validation;
  double steps_per_second = 0;
};

struct TrainResult {
  std::int64_t epochs = 0;
  std::uint64_t steps = 0;
  double seconds = 0;  // wall time of training, evaluation apart
  bool cancelled = false;
  std::vector<double> losses;  // of every step
};

class GRAPHRUN_API Session {
 public:
  Session(Model model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Trains for the model's number of epochs. `on_report` is called in this thread after every log_every epochs and the
  // last.
  TrainResult train(const std::function<void(const Report&)>& on_report = {});
  void
  cancel() noexcept;  // train() returns after the chunk of steps in flight; a chunk ends with a report at the latest

  // Loss and metrics over a whole split with the present weights; throws Error when the split does not exist.
  Metrics evaluate(std::string_view split);
  bool has_split(std::string_view split) const;

  // First output for each sample of `inputs` (original units in, original units out).
  HostTensor predict(const std::vector<std::pair<std::string, HostTensor>>& inputs);

  HostTensor read(std::string_view name);  // a state by name: a parameter, a moment, a counter
  void write(std::string_view name, const HostTensor& value);
  std::string weights_hash();  // of the parameters' bytes, FNV-1a, 16 hex digits

  // What the executor counted so far: "allocations", "launches", … (Runnable::counters()); empty if it counts nothing.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

  const Program& program() const;
  const Model& model() const;
  std::string_view executor() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Plans without loading: needs no device.
GRAPHRUN_API Program plan_program(const Model& model, const SessionOptions& options = {});

}  // namespace graphrun
