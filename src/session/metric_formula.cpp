#include "session/metric_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/compile.h"
#include "graphrun/target.h"

namespace graphrun {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Value for zero rows, and the combination of two partial values.
struct Combination {
  double nothing;
  double (*both)(double before, double more);
};
constexpr Combination kCombinations[] = {
    // Same order as Combined. Like the ops, max and min propagate NaN.
    {0, [](double a, double b) { return a + b; }},
    {1, [](double a, double b) { return a * b; }},
    {-kInfinity, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }},
    {kInfinity, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }},
    {-kInfinity,
     [](double a, double b) {
       const double largest = std::max(a, b);
       return std::isinf(largest) ? largest : largest + std::log(std::exp(a - largest) + std::exp(b - largest));
     }},
    {0, [](double, double b) { return b; }},
};
static_assert(std::size(kCombinations) == static_cast<std::size_t>(Combined::same) + 1);

}  // namespace

double nothing_combined(Combined how) {
  return kCombinations[static_cast<std::size_t>(how)].nothing;
}

double combined(Combined how, double before, double more) {
  return kCombinations[static_cast<std::size_t>(how)].both(before, more);
}

PlannedFormula::PlannedFormula(const MetricFormula& formula) {
  const std::shared_ptr<Executor> ref = find_executor("ref");  // computes in double
  const Target& target = find_target(ref->default_target());
  CompileOptions options;
  options.name = "metric";
  options.target = std::string(target.name);
  options.supports = [&](const StepSignature& step) { return ref->supports(step, target); };
  const Compiled compiled = compile(formula.graph, options);
  runnable_ = ref->load(compiled.program);
  for (const ir::NodeId id : formula.parts) {
    parts_.emplace_back(compiled.buffer(id), static_cast<std::size_t>(formula.graph[id].type.shape.elements()));
  }
  samples_ = compiled.buffer(formula.samples);
  value_ = compiled.buffer(formula.value);
}

double PlannedFormula::value(std::span<const double> parts, double samples) {
  for (const auto& [buffer, elements] : parts_) {
    runnable_->write(buffer, std::as_bytes(parts.first(elements)));
    parts = parts.subspan(elements);
  }
  runnable_->write(samples_, std::as_bytes(std::span(&samples, 1)));
  runnable_->run(0, 1);
  double result = 0;
  runnable_->read(value_, std::as_writable_bytes(std::span(&result, 1)));
  return result;
}

}  // namespace graphrun
