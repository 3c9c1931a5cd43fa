#include "session/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "graphrun/elements.h"

namespace graphrun {

Evaluator::Evaluator(LoadedModel& loaded, Predictor& predictor) : loaded_(loaded), predictor_(predictor) {
  for (const StepPhase& phase : loaded_.phases()) {
    std::size_t numbers = 0;
    for (const Recorded& recorded : phase.recorded) numbers += std::max<std::size_t>(1, recorded.parts.size());
    totals_.resize(std::max(totals_.size(), numbers));
  }
  for (const MetricFormula& formula : loaded_.compiled.step.formulas) formulas_.emplace_back(formula);
}

std::optional<std::size_t> Evaluator::phase_of(std::string_view split) const {
  return loaded_.phase_index(fmt::format("evaluate.{}", split));
}

std::vector<std::string> Evaluator::metric_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < loaded_.phases().size() && names.empty(); ++i) {
    if (!loaded_.phases()[i].name.starts_with("evaluate.")) continue;
    for (const auto& [name, value] : named_metrics(i).values) names.push_back(name);
  }
  return names;
}

Metrics Evaluator::named_metrics(std::size_t evaluation) const {
  Metrics metrics;
  const std::vector<Recorded>& recorded = loaded_.phases()[evaluation].recorded;
  for (std::size_t i = 1; i < recorded.size(); ++i) metrics.values.emplace_back(recorded[i].name, 0.0);
  return metrics;
}

bool Evaluator::evaluate(std::size_t index, Metrics& metrics, double until) {
  const StepPhase& phase = loaded_.phases()[index];
  const std::uint64_t batches = static_cast<std::uint64_t>(phase.batches.count());
  if (!evaluate_scores(phase, metrics, until)) return false;
  // Calls see(part, whether it is weighted by samples, total) for every recorded number.
  const auto each = [&](auto see) {
    std::size_t i = 0;
    for (const Recorded& recorded : phase.recorded) {
      if (recorded.score != nullptr) continue;
      if (recorded.parts.empty()) see(MetricPart{recorded.ring, Combined::sum}, true, totals_[i++]);
      for (const MetricPart& part : recorded.parts) see(part, false, totals_[i++]);
    }
  };
  // Weight of the batch mean at a step.
  const auto samples_at = [&](std::uint64_t step) { return static_cast<double>(phase.batches.at(step)); };
  each([](const MetricPart& part, bool, double& total) { total = nothing_combined(part.how); });
  for (std::uint64_t first = 0; first < batches;) {
    const bool unwanted = loaded_.is_training() && loaded_.is_cancelled();
    if (unwanted || Profiler::now() > until) {
      loaded_.set_done(index, loaded_.done[index] - first);  // the next evaluation restarts at the first batch
      return false;
    }
    const std::uint64_t n =
        loaded_.steps_per_poll(index, std::min(batches - first, static_cast<std::uint64_t>(phase.ring)));
    loaded_.run(index, n);
    each([&](const MetricPart& part, bool weighted, double& total) {
      loaded_.observe(index, part.node, n, [&](std::uint64_t step, float value) {
        total = combined(part.how, total, (weighted ? samples_at(step) : 1.0) * static_cast<double>(value));
      });
    });
    first += n;
  }
  std::span<const double> left = totals_;
  const double samples = static_cast<double>(phase.batches.samples());
  for (std::size_t i = 0; i < phase.recorded.size(); ++i) {
    const Recorded& recorded = phase.recorded[i];
    if (recorded.score != nullptr) continue;
    const std::size_t numbers = std::max<std::size_t>(1, recorded.parts.size());
    double value = recorded.parts.empty() ? finished(recorded, left[0] / samples)
                                          : formulas_[recorded.formula].value(left.first(numbers), samples);
    value = unsigned_nan(value);
    (i == 0 ? metrics.loss : metrics.values[i - 1].second) = value;
    left = left.subspan(numbers);
  }
  return true;
}

}  // namespace graphrun
