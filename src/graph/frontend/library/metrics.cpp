#include "graph/frontend/library/metrics.h"

namespace graphrun {

const std::vector<MetricDef>& metrics() {
  static const std::vector<MetricDef> table = {
      {{"mse", "mean of the squared errors"}, "mse", 2, MetricDef::Finish::none},
      {{"rmse", "root of the mean of the squared errors"}, "mse", 2, MetricDef::Finish::root},
      {{"accuracy", "share of samples whose class is right"}, "accuracy", 0, MetricDef::Finish::none, true},
      {{"mae", "mean of the absolute errors"}, "mae", 1, MetricDef::Finish::none},
      {{"r2", "1 - mse / variance of the target; 1 is perfect, 0 no better than the mean"},
       "mse",
       2,
       MetricDef::Finish::r2,
       true},
  };
  return table;
}

}  // namespace graphrun
