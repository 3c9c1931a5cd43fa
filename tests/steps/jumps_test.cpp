// --math=fast beside jumps: where a quotient is a whole number, an approximation that is off by an ulp must not decide
// what floor, a comparison or a gradient does. The machine's functions have all the error that the PTX ISA allows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/approximations.h"
#include "executors/ref/ref_executor.h"
#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "steps/emulated_executor.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

// k is 1 to 99, {0} is a parameter that is 1; the loss is the sum of their means over the rows.
constexpr std::string_view kTerms[] = {
    "{0} * floor(k * 7 / k)",
    "{0} * ceil(k * 7 / k)",
    "{0} * round(k * 3 / (2 * k))",
    "{0} * sign(k / k - 1)",
    "{0} * (k * 7 / k % 7)",
    "{0} * cast(cast(k * 7 / k, dtype=i32), dtype=f32)",
    "{0} * cast(k / k != 1, dtype=f32)",
    "{0} * where(k * 7 / k >= 7 and k * 7 / k <= 7, 2, 3)",
    "{0} * floor(reciprocal(1 / (k / k)))",
    "{0} * floor(sqrt(square(k)) - k)",
    "{0} * floor(exp(k - k) + log(k / k) + tanh(k - k))",
    "{0} * floor(softmax(k))",
    "{0} * floor(max(concat(k / k, k * 3 / k, axis=1), axis=1))",
    "{0} * floor(sum(concat(k / k, k * 3 / k, axis=1), axis=1))",
    "{0} * cast(argmax(concat(k / k, k * 0 + 1, axis=1), axis=1), dtype=f32)",
    "{0} * cast(argmin(concat(k / k, k * 0 + 1, axis=1), axis=1), dtype=f32)",
    "{0} * floor(slice(concat(k, k / k, axis=1), axis=1, start=1, stop=2))",
    "{0} * floor(sum(k / k, axis=0))",                    // of what all rows share
    "{0} * floor(k / k + 0 * logsumexp(k / k, axis=0))",  // after a kernel between
    "k * 7 % (k * {0})",                                  // -floor(x / y) in the gradient
    "relu(k / k * {0} - 1)",                              // 0 or 1 there
    "abs(k / k * {0} - 1)",
    "clip(k / k * {0}, low=0, high=1)",
    "minimum(k / k * {0}, {0}) + maximum(k / k, {0})",
};

Model model_of(const TemporaryFolder& folder) {
  std::string parameters, terms, loss;
  for (std::size_t i = 0; i < std::size(kTerms); ++i) {
    const std::string w = fmt::format("w{}", i);
    parameters += fmt::format(R"({}"{}": {{"shape": [1], "init": "ones"}})", i == 0 ? "" : ", ", w);
    terms += fmt::format("\"t{} = mean({})\", ", i, fmt::format(fmt::runtime(kTerms[i]), w));
    loss += fmt::format("{}t{}", i == 0 ? "" : " + ", i);
  }
  const std::string text = fmt::format(R"json({{"format": 1, "name": "jumps",
 "data": {{"train": {{"random": {{"rows": 37, "seed": 1, "columns": {{"a": {{"integers": [1, 100]}}}}}}, "x": ["a"]}}}},
 "inputs": {{"x": ["batch", 1]}}, "outputs": ["k"], "parameters": {{{}}}, "graph": ["k = abs(x)", {}"loss = {}"],
 "train": {{"minimize": "loss", "optimizer": {{"sgd": {{"lr": 1}}}}, "batch": "all", "epochs": 1}}}})json",
                                       parameters, terms, loss);
  return load_model(folder.write("model.json", text));
}

// The parameters after a step.
std::vector<float> trained(const Model& model, const std::shared_ptr<Executor>& executor) {
  PlanOptions plan;
  plan.fuse = true;
  const CompiledModel compiled = compile_model(model, {&executor, 1}, plan);
  const auto runnable = executor->load(compiled.program);
  write_start(model, compiled, {runnable.get()});
  runnable->run(0, 1);
  std::vector<float> values;
  for (const auto& [name, node] : compiled.step.parameters)
    runnable->read(compiled.buffer(node), std::as_writable_bytes(std::span(&values.emplace_back(), 1)));
  return values;
}

TEST(FastMathBesideJumps, DecidesAsTheReference) {
  if (is_too_slow()) GTEST_SKIP() << "the texts are compiled without sanitizers";
  const TemporaryFolder folder;
  const Model model = model_of(folder);
  const std::vector<float> want = trained(model, std::make_shared<RefExecutor>());
  for (const RowTile tile : {RowTile::thread, RowTile::warp, RowTile::block}) {
    EmulationOptions options;
    options.tile = tile;
    const auto emulated = std::make_shared<EmulatedExecutor>(options);
    for (const auto& errors : std::vector<cuda::tile::Errors>{{-1, -1}, {1, 1}, {-1, 1}}) {
      cuda::tile::errors = errors;
      const std::vector<float> got = trained(model, emulated);
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-4 * std::max(1.0f, std::fabs(want[i])))
            << kTerms[i] << ", tile " << static_cast<int>(tile) << ", errors from " << errors.low << " to "
            << errors.high;
    }
  }
  cuda::tile::errors = {};
}

}  // namespace
}  // namespace graphrun::test
