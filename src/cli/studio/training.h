// training.h: the training of the studio: one at a time, in a thread of its own, as `train --run-dir` does it.
// Contract: start(), control() and look() return at once; they are jobs for the training's thread, which does them
// between two steps. What happens is told by `tell(event, json)` in that thread: "state" (all but the points),
// "points" (of the curves), "progress". The same text gives the same weights as the command that state_json() has. All
// functions but change() may be called by any thread.
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
  ~StudioTraining();  // ends the training that is under way, and keeps what it has

  // `arguments` as for the verb train; the command that does the same is made of them.
  void start(const Arguments& arguments);
  enum class Control { pause, resume, step, stop, reset };
  void control(Control what);

  // Calls f with the session between two steps, or with null where there is none.
  void look(std::function<void(Session*)> f);

  // Within such an f: sets a number of the optimizer (hyperparameter_changes.h) from the next step on, and the run's
  // folder tells of it. Throws Error where nothing trains or there is no such number.
  void change(std::string_view number, double value);

  std::string state_json() const;  // with the points
  std::uint64_t number() const;    // of the training that is shown: another one's after each start and reset

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"error": ..., "diagnostics": [...]}, the fields of --diagnostics=json.
std::string error_json(const Error& error);

}  // namespace graphrun::cli
