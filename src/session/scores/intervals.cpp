// intervals.cpp: confidence intervals of parameters that were fitted by least squares.
// Method: for a loss of w r^2 over n residuals and p parameters, the covariance is s^2 (J^T w J)^-1 with
// s^2 = loss / (n - p), as of nls in R and curve_fit in SciPy (Bates and Watts, Nonlinear Regression Analysis, 1988).
// J and the residuals are those of a training step of levenberg_marquardt in fp64 over all rows, which a plan of its
// own computes from the session's states.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "base/student_t.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/optimizers.h"
#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {
namespace {

// Smallest pivot of J^T w J with a unit diagonal: 1 - R^2 of a column of J on the columns before it. Rounding in fp64
// changes larger ones by less than 1e-3.
constexpr double kMinPivot = 1e-11;

[[noreturn]] void reject_fit(const std::string& why, std::string hint = "") {
  throw Error(ErrorKind::input, "intervals.none", fmt::format("no confidence intervals: {}", why), std::move(hint));
}

std::vector<double> numbers_in(Runnable& runnable, const Program& program, BufferId id) {
  HostTensor tensor(program.buffers[id].type.dtype, program.buffers[id].type.shape);
  runnable.read(id, tensor.bytes());
  return as_doubles(tensor);
}

// "decay", or "W[0,3]" for each element.
void add_elements(FitIntervals& fit, const std::string& name, const Shape& shape, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
    auto rest = static_cast<std::int64_t>(i);
    for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
      at[static_cast<std::size_t>(axis)] = rest % shape[axis];
    fit.parameters.push_back({at.empty() ? name : fmt::format("{}[{}]", name, fmt::join(at, ",")), values[i]});
  }
}

// Inverse of the lower Cholesky factor of `matrix` (p, p), which has a unit diagonal. Row-major.
std::vector<double> inverse_factor(std::vector<double> matrix, const FitIntervals& fit) {
  const std::size_t p = fit.parameters.size();
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double* const at = &matrix[i * p + j];
      *at -= std::inner_product(&matrix[i * p], at, &matrix[j * p], 0.0);
      if (j < i) *at /= matrix[j * p + j];
    }
    if (!(matrix[i * p + i] >= kMinPivot))
      reject_fit(fmt::format("J^T w J is singular: the training rows do not determine '{}' independently of the other "
                             "parameters",
                             fit.parameters[i].parameter),
                 "make it a constant, or add rows where its effect differs");
    matrix[i * p + i] = std::sqrt(matrix[i * p + i]);
  }
  std::vector<double> inverse(p * p);
  for (std::size_t i = 0; i < p; ++i) {
    inverse[i * p + i] = 1 / matrix[i * p + i];
    for (std::size_t k = 0; k < i; ++k)  // rows of the inverse, by row operations
      for (std::size_t j = 0; j <= k; ++j)
        inverse[i * p + j] -= matrix[i * p + k] * inverse[k * p + j] * inverse[i * p + i];
  }
  return inverse;
}

// Restores the training section of a model.
struct RestoredTraining {
  TrainSpec& train;
  TrainSpec given;
  ~RestoredTraining() { train = std::move(given); }
};

}  // namespace

FitIntervals Session::intervals(double probability) {
  LoadedModel& loaded = not_moved(impl_).loaded;
  loaded.reject_in_train("intervals");
  const RestoredTraining restored{loaded.model.train, loaded.model.train};
  const TrainSpec& given = restored.given;
  const Split* const rows = loaded.model.data.find("train");
  if (!given.minimize.valid() || !given.objectives.empty() || rows == nullptr || rows->rows_vary)
    reject_fit("they need one loss, and training rows whose number does not vary");
  const ir::Attrs attrs(row_named("optimizer", optimizers(), given.optimizer.name).attributes,
                        {given.optimizer.attributes.begin(), given.optimizer.attributes.end()});
  for (const auto& [name, value] : attrs.list())
    if ((name == "l2" || name == "weight_decay") && attrs.real(name) != 0)
      reject_fit(fmt::format("{} biases the parameters towards 0", name), fmt::format("\"{}\": 0", name));

  TrainSpec fitting;
  fitting.minimize = given.minimize;
  fitting.seed = given.seed;
  fitting.precision = Precision::fp64;
  fitting.optimizer.name = "levenberg_marquardt";
  fitting.optimizer.attributes.clear();
  loaded.model.train = fitting;
  StepGraph step = build_step_graph(loaded.model);
  const NormalEquations equations = step.equations;
  step.graph[equations.matrix].keep = step.graph[equations.vector].keep = true;
  for (const auto& [square, weight] : equations.residuals) step.graph[square].keep = step.graph[weight].keep = true;
  const std::shared_ptr<Executor> cpu = find_executor("cpu");
  const CompiledModel compiled =
      compile_step(std::move(step), rows->samples(), loaded.model, {&cpu, 1}, plain_steps(SessionOptions()));
  const std::unique_ptr<Runnable> runnable = load_program(*cpu, compiled.program);
  for (BufferId id = 0; id < compiled.program.buffers.size(); ++id) {
    const Buffer& buffer = compiled.program.buffers[id];
    const BufferId from = loaded.compiled.find(buffer.name);
    if (!is_state(buffer.kind) || buffer.kind == BufferKind::constant || from == kNoBuffer) continue;
    if (buffer.kind == BufferKind::counter || buffer.kind == BufferKind::metric) continue;
    if (loaded.program().buffers[from].type.shape != buffer.type.shape) continue;  // inputs of predictions, by batch
    const std::vector<double> values = numbers_in(*loaded.runnable, loaded.program(), from);
    runnable->write(id, from_doubles(values, buffer.type).bytes());
  }
  runnable->run(0, 1);
  const auto read = [&](ir::NodeId node) { return numbers_in(*runnable, compiled.program, compiled.buffer(node)); };

  FitIntervals fit;
  const ObjectiveSpec objective = objectives_of(loaded.model).front();
  for (const Value parameter : objective.parameters) {
    const ir::Node& node = loaded.model.graph.impl().graph[parameter.id];
    const BufferId id = loaded.compiled.find(node.name);
    add_elements(fit, node.name, node.type.shape, numbers_in(*loaded.runnable, loaded.program(), id));
  }
  double sum = 0, total_weight = 0;
  for (const auto& [square, weight] : equations.residuals) {
    const std::vector<double> squares = read(square), weights = read(weight);
    for (std::size_t i = 0; i < squares.size(); ++i) {
      sum += weights[i] * squares[i];
      total_weight += weights[i];
      fit.residuals += weights[i] != 0;
    }
  }
  const std::size_t p = fit.parameters.size();
  if (fit.residuals <= p)
    reject_fit(fmt::format("the training rows have {} residuals for {} parameters", fit.residuals, p),
               "there must be more residuals than parameters");
  const std::size_t freedom = fit.residuals - p;
  const double s = std::sqrt(sum / static_cast<double>(freedom));
  fit.std_dev = s * std::sqrt(static_cast<double>(fit.residuals) / total_weight);
  std::vector<double> matrix = read(equations.matrix), vector = read(equations.vector), scale(p);
  for (std::size_t i = 0; i < p; ++i) {
    scale[i] = std::sqrt(matrix[i * p + i]);
    if (!std::isfinite(s)) reject_fit("the residuals are not finite");
    if (!std::isfinite(scale[i]))
      reject_fit("the derivatives of the residuals are not finite", "start the fit at other values");
  }
  for (std::size_t i = 0; i < p * p; ++i) matrix[i] /= scale[i / p] * scale[i % p];
  const std::vector<double> inverse = inverse_factor(std::move(matrix), fit);
  const double t = student_t(probability, freedom);
  for (std::size_t i = 0; i < p; ++i) {
    double variance = 0, move = 0;
    for (std::size_t k = i; k < p; ++k) variance += inverse[k * p + i] * inverse[k * p + i];
    for (std::size_t j = 0; j <= i; ++j) move += inverse[i * p + j] * vector[j] / scale[j];
    fit.offset += move * move;
    ParameterInterval& one = fit.parameters[i];
    one.std_error = s * std::sqrt(variance) / scale[i];
    one.low = one.value - t * one.std_error;
    one.high = one.value + t * one.std_error;
  }
  fit.offset = fit.offset > 0 ? std::sqrt(fit.offset) / s : 0;
  return fit;
}

}  // namespace graphrun
