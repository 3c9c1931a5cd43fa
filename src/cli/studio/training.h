// training.h: the studio's training: one at a time, in its own thread, as `train --run-dir` does it.
// Contract: start(), control() and look() return at once; the training's thread runs them as jobs between two steps. It
// sends events through `send(event, json)`: "state" (everything but the points), "points" (of the curves), "frames"
// (weights, replay.h), "progress". Equal texts give the same weights as the command in state_json(). All functions but
// change() may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/arguments.h"
#include "graphrun/session.h"
#include "studio/worker.h"

namespace graphrun::cli {

class StudioTraining {
 public:
  using Send = std::function<void(std::string_view event, std::string_view json)>;

  explicit StudioTraining(Send send);
  ~StudioTraining();  // stops the current training and keeps its results

  // `arguments`: as for the verb `train`; state_json() shows the equivalent command.
  void start(const Arguments& arguments);
  enum class Control { pause, resume, step, stop, reset };
  void control(Control what);

  // Limits the epochs per second, and stores the weights of each epoch for the page. 0: full speed.
  void set_speed(double epochs_per_second);

  // Calls f with the session between two steps, or with null if there is none.
  void look(std::function<void(Session*)> f);

  // Call only within such an f: sets a runtime hyperparameter (hyperparameter_changes.h) from the next step on and
  // records it in the run's folder. Throws Error if no training is running or the hyperparameter does not exist.
  void change(std::string_view number, double value);

  std::string state_json() const;  // includes the points
  std::uint64_t number() const;    // identifies the current training; start and reset change it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"error": ..., "diagnostics": [...]}, with the fields of --diagnostics=json.
std::string error_json(const Error& error);

}  // namespace graphrun::cli
