// log_pictures.h: curves of logged metrics, one plot per metric: its values on the training and validation rows share
// the axes.
// Contract: TrainingCurves::report() allocates nothing. Throws Error (kind input) for a log with a cell that is not a
// number, and for an unknown column.
#pragma once

#include <string>
#include <vector>

#include "cli/stored_runs/curves.h"
#include "graphrun/session.h"
#include "plot/figure.h"

namespace graphrun::cli {

struct NamedLog {
  std::string name;  // distinguishes the logs of several runs
  Table table;
};

// Plots over column `x`, in the order of the columns. `columns`: names of those to draw; empty: all metrics that have
// values. With one log, colours distinguish the series of a plot; with several, the logs.
std::vector<plot::Figure> log_pictures(const std::vector<NamedLog>& logs, const std::string& x,
                                       const std::vector<std::string>& columns);

// Plots of a CSV --log over its epochs. Empty if the file is missing or has no epochs: --log may have named another
// file.
std::vector<plot::Figure> log_pictures(const std::string& path);

// Curves of the current training, one point per epoch, preallocated before the first step.
class TrainingCurves {
 public:
  TrainingCurves(const Session& session, bool wanted);

  void report(const Report& report);
  // `log`: log of a resumed training, which has the rows since the first epoch.
  std::vector<plot::Figure> figures(const std::string& log);

 private:
  std::vector<plot::Series> series_;  // loss, validation_loss, and the other validation metrics; empty: not wanted
};

}  // namespace graphrun::cli
