// next_host.cpp PLUGIN...: the host side of a later version (tests/CMakeLists.txt makes its header): trains a model on
// each plug-in, built against this version or that one, and compares it with cpu.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>

#include "executors/c_executor.h"
#include "graphrun/error.h"
#include "graphrun/session.h"

static_assert(GR_EXECUTOR_VERSION == 2, "the header of this version was included");

namespace {

using namespace graphrun;

Model xor_model() {
  GraphBuilder graph(3);  // a last batch of one row
  const Value x = graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value out = graph.dense("out", graph.dense("hidden", x, 8, "tanh"), 1);
  Model model(std::move(graph));
  model.name = "xor";
  model.outputs = {{out, "out", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(out - y))");
  model.train.optimizer.attributes = {{"lr", 0.1}};
  model.train.epochs = 50;
  const std::vector<float> xs = {0, 0, 0, 1, 1, 0, 1, 1}, ys = {0, 1, 1, 0};
  HostTensor x_data(DType::f32, {4, 2}), y_data(DType::f32, {4, 1});
  std::copy(xs.begin(), xs.end(), x_data.elements<float>().begin());
  std::copy(ys.begin(), ys.end(), y_data.elements<float>().begin());
  model.data.splits = {{"train", {{"x", x_data}, {"y", y_data}}}};
  return model;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<double> expected = Session(xor_model()).train().losses;
  for (int i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    SessionOptions options;
    options.custom_executor =
        make_c_executor(argv[i], reinterpret_cast<CEntry>(dlsym(library, "graphrun_executor_plugin_c")), "");
    const std::vector<double> losses = Session(xor_model(), options).train().losses;
    bool near = losses.size() == expected.size() && !losses.empty();
    for (std::size_t k = 0; near && k < losses.size(); ++k) near = std::fabs(losses[k] - expected[k]) < 1e-4;
    std::printf("%s: %s\n", argv[i], near ? "trains as cpu does" : "trains otherwise than cpu");
    if (!near) return 1;
  }
  return argc > 1 ? 0 : 2;
} catch (const graphrun::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
