#include "session/metric_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/compile.h"
#include "graphrun/target.h"

namespace graphrun {

double nothing_combined(Combined how) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (how) {
    case Combined::product:
      return 1;
    case Combined::max:
    case Combined::logsumexp:
      return -kInfinity;
    case Combined::min:
      return kInfinity;
    case Combined::sum:
    case Combined::same:
      break;
  }
  return 0;
}

double combined(Combined how, double before, double more) {
  switch (how) {
    case Combined::sum:
      return before + more;
    case Combined::product:
      return before * more;
    case Combined::max:  // NaN if there is one, as the op has it
      return std::isnan(before) || before > more ? before : more;
    case Combined::min:
      return std::isnan(before) || before < more ? before : more;
    case Combined::logsumexp: {
      const double largest = std::max(before, more);
      if (std::isinf(largest)) return largest;
      return largest + std::log(std::exp(before - largest) + std::exp(more - largest));
    }
    case Combined::same:
      break;
  }
  return more;
}

PlannedFormula::PlannedFormula(const MetricFormula& formula) {
  const std::shared_ptr<Executor> ref = find_executor("ref");  // which computes in double
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
