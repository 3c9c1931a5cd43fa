// loss_curves.h: losses over the epochs, as the page of a run shows them.
// Contract: report() allocates nothing. Throws Error (kind input) for a log with a cell that is no number.
#pragma once

#include <string>

#include "graphrun/session.h"
#include "plot/figure.h"

namespace graphrun::cli {

// Of a log that --log wrote as CSV. One with other columns, or none, has no curves: --log may have named another file.
plot::Figure loss_curves_of(const std::string& log);

// Of a training under way: as many as there are epochs, and room for them before the first step.
class LossCurves {
 public:
  LossCurves(const Session& session, bool wanted);

  void report(const Report& report);
  // With the log of a training that went on from a checkpoint: its rows, which reach back to the first epoch.
  plot::Figure figure(const std::string& log);

 private:
  bool wanted_;
  plot::Series loss_{"loss", {}, {}, 0, 0}, validation_{"validation_loss", {}, {}, 1, 0};
};

}  // namespace graphrun::cli
