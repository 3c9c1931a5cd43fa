// split_scores.cpp: runs predictions over a split and passes each output's rows to its metric accumulators.
#include <algorithm>
#include <cmath>
#include <memory>

#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "session/evaluator.h"
#include "session/scores/class_counter.h"
#include "session/scores/ranking.h"
#include "session/scores/residuals.h"

namespace graphrun {
namespace {

bool are_below(const HostTensor& classes, std::size_t count) {
  const auto all = classes.elements<std::int32_t>();
  return std::all_of(all.begin(), all.end(), [&](std::int32_t k) { return static_cast<std::uint32_t>(k) < count; });
}

// One output with its target and the results so far.
class ScoredOutput {
 public:
  ScoredOutput(std::size_t index, const OutputSpec& spec, const ClassOutput& how, const HostTensor& target,
               const Shape& row, const Standardization* fitted)
      : index_(index), target_(target), fitted_(fitted) {
    scores_.output = spec.name;
    scores_.target = spec.target;
    numbers_ = static_cast<std::size_t>(row.elements());
    const auto samples = static_cast<std::size_t>(target.shape()[0]);
    const std::size_t targets = static_cast<std::size_t>(target.shape().elements()) / std::max<std::size_t>(samples, 1),
                      width = row.rank() == 0 ? 1 : static_cast<std::size_t>(row[row.rank() - 1]);
    const bool are_indices = target.dtype() == DType::i32;
    if (are_indices && !are_below(target, std::max<std::size_t>(width, 2))) return;  // class numbers of another output
    if (how.is_class && (targets == numbers_ || (are_indices && targets * width == numbers_))) {
      scores_.rows = samples * numbers_ / width;
      classes_ = std::make_unique<ClassCounter>(how, target, width);
    } else if (!how.is_class && targets == numbers_) {
      scores_.rows = samples;
      residuals_ = std::make_unique<Residuals>(samples, numbers_);
    }
  }

  bool is_known() const { return classes_ != nullptr || residuals_ != nullptr; }
  std::size_t index() const { return index_; }

  void add(std::int64_t samples, const HostTensor& batch) {
    const std::size_t count = static_cast<std::size_t>(samples) * numbers_;
    with_elements(batch, [&](const auto all) {
      const auto rows = all.first(count);
      finite_ = finite_ && std::ranges::all_of(rows, [](auto x) { return std::isfinite(static_cast<double>(x)); });
      if (classes_ != nullptr)
        floats_.assign(rows.begin(), rows.end());
      else
        predicted_.assign(rows.begin(), rows.end());
    });
    if (!finite_) return;
    if (classes_ != nullptr) return classes_->add(floats_);
    with_elements(target_, [&](const auto all) {
      const auto part = all.subspan(seen_, count);
      targets_.assign(part.begin(), part.end());
    });
    seen_ += count;
    in_original_units(predicted_);
    in_original_units(targets_);
    residuals_->add(predicted_, targets_);
  }

  std::optional<OutputScores> scores(bool with_curves) const {
    if (!finite_) return std::nullopt;
    OutputScores all = scores_;
    if (classes_ != nullptr) all.classes = classes_->scores(with_curves);
    if (residuals_ != nullptr) all.regression = residuals_->scores();
    return all;
  }

 private:
  void in_original_units(std::vector<double>& values) const {
    if (fitted_ == nullptr) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t column = i % fitted_->scale.size();
      values[i] = invert_log(fitted_->log, values[i] * fitted_->scale[column] + fitted_->shift[column]);
    }
  }

  std::size_t index_;
  const HostTensor& target_;
  const Standardization* fitted_;
  OutputScores scores_;
  std::size_t numbers_ = 0, seen_ = 0;  // numbers per sample of the output; target values consumed
  bool finite_ = true;
  std::unique_ptr<ClassCounter> classes_;
  std::unique_ptr<Residuals> residuals_;
  std::vector<float> floats_;  // buffers for one batch
  std::vector<double> predicted_, targets_;
};

const HostTensor* column_of(const Split& split, std::string_view input) {
  for (const auto& [name, tensor] : split.columns) {
    if (name == input) return &tensor;
  }
  return nullptr;
}

}  // namespace

bool Evaluator::evaluate_scores(const StepPhase& phase, Metrics& metrics, double until) {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < phase.recorded.size(); ++i) {
    if (phase.recorded[i].score != nullptr) left.push_back(i);
  }
  while (!left.empty()) {  // all metrics of one output at a time
    const Recorded& first = phase.recorded[left.front()];
    const ScoredAs as{first.target, first.score->of_classes != nullptr};
    const std::optional<std::vector<OutputScores>> found = scores_as(&as, phase.split, until, false);
    if (!found) return false;
    std::erase_if(left, [&](std::size_t i) {
      const Recorded& one = phase.recorded[i];
      if (one.target != as.target || (one.score->of_classes != nullptr) != as.is_class) return false;
      metrics.values[i - 1].second = found->empty() ? kNoScore
                                     : as.is_class  ? one.score->of_classes(*found->front().classes)
                                                    : found->front().regression->mean.*one.score->of_numbers;
      return true;
    });
  }
  return true;
}

std::optional<std::vector<OutputScores>> Evaluator::scores_as(const ScoredAs* as, std::string_view name, double until,
                                                              bool with_curves) {
  std::vector<OutputScores> found;
  const std::optional<std::size_t> index = loaded_.phase_index("predict");
  const Split* split = loaded_.model.data.find(name);
  if (!index || split == nullptr || split->columns.empty() || split->samples() == 0) return found;
  const StepPhase& phase = loaded_.phases()[*index];
  std::vector<GivenRows> given;
  for (const auto& [input, node] : phase.inputs) {
    const HostTensor* column = column_of(*split, input);
    if (column == nullptr) return found;
    given.push_back(given_rows(*column, nullptr));  // already in the units of the model
  }
  if (given.empty()) return found;

  std::vector<ClassOutput> how = class_outputs(loaded_.model);
  std::vector<ScoredOutput> outputs;
  std::size_t count = 0;
  for (std::size_t i = 0; i < loaded_.model.outputs.size(); ++i) {
    const OutputSpec& spec = loaded_.model.outputs[i];
    if (as != nullptr && spec.target != as->target) continue;
    if (as != nullptr) {
      how[i].is_class = as->is_class;
      how[i].thresholds.clear();  // the model's metrics stay comparable between runs
    }
    const HostTensor* target = spec.target.empty() ? nullptr : column_of(*split, spec.target);
    const TensorType& type = loaded_.program().buffers[loaded_.buffer(phase.outputs[i])].type;
    if (target == nullptr || type.rows == 0 || !is_float(type.dtype)) continue;
    Shape row;
    for (int axis = 1; axis < type.shape.rank(); ++axis) row.push_back(type.shape[axis]);
    ScoredOutput output(i, spec, how[i], *target, row, loaded_.fitted_of(spec.target));
    if (type.rows != 1 || !output.is_known()) continue;
    outputs.push_back(std::move(output));
    count = i + 1;
  }
  if (outputs.empty()) return found;
  const auto see = [&](std::int64_t rows, std::span<const HostTensor> batches) {
    for (ScoredOutput& output : outputs) output.add(rows, batches[output.index()]);
    const bool unwanted = loaded_.is_training() && loaded_.is_cancelled();
    return Profiler::now() <= until && !(as != nullptr && unwanted);
  };
  if (!predictor_.each_batch(phase, given, count, see)) return std::nullopt;
  for (const ScoredOutput& output : outputs) {
    if (std::optional<OutputScores> scores = output.scores(with_curves)) found.push_back(std::move(*scores));
  }
  return found;
}

bool Evaluator::choose_thresholds(const ThresholdRule& rule, std::string_view split, double until) {
  loaded_.model.data.thresholds.clear();
  const std::optional<std::vector<OutputScores>> all = scores(split, until, true);
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const std::optional<ClassScores>& of = (*all)[i].classes;
    if (!of || of->kind == ClassScores::Kind::several) continue;
    const std::span<const PerClassScores> labels =
        std::span(of->classes).subspan(of->kind == ClassScores::Kind::two ? 1 : 0);
    const auto is_unknown = [](const PerClassScores& one) { return one.curve.empty(); };  // too many rows to rank
    if (rule.by != ThresholdRule::By::value && std::ranges::any_of(labels, is_unknown)) continue;
    FittedStatistic chosen{(*all)[i].output, {}};
    for (const PerClassScores& label : labels) chosen.values.push_back(threshold_by(rule, label.curve));
    loaded_.model.data.thresholds.push_back(std::move(chosen));
  }
  return !loaded_.model.data.thresholds.empty();
}

}  // namespace graphrun
