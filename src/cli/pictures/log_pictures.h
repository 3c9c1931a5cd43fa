// loss_curves.h: loss over epochs, for the report page of a run.
// Contract: report() allocates nothing. Throws Error (kind input) for a log with a cell that is not a number.
#pragma once

#include <string>

#include "graphrun/session.h"
#include "plot/figure.h"

namespace graphrun::cli {

// Curves from a CSV --log. Empty if the columns differ or the file is missing: --log may have named another file.
plot::Figure loss_curves_of(const std::string& log);

// Curves of the current training, one point per epoch, preallocated before the first step.
class LossCurves {
 public:
  LossCurves(const Session& session, bool wanted);

  void report(const Report& report);
  // `log`: log of a resumed training, which has the rows since the first epoch.
  plot::Figure figure(const std::string& log);

 private:
  bool wanted_;
  plot::Series loss_{"loss", {}, {}, 0, 0}, validation_{"validation_loss", {}, {}, 1, 0};
};

}  // namespace graphrun::cli
