// linear_time_test.cpp: data and weights of four times the size take about four times the CPU time. What grows with the
// square would take sixteen times.
#include "data/formats/npy.h"
#include "data_fixture.h"
#include "graphrun/session.h"
#include "graphrun/weights.h"
#include "support/cpu_time.h"

namespace graphrun {
namespace {

using Arrays = std::vector<std::pair<std::string, HostTensor>>;

std::string list(int n, const std::function<std::string(std::string)>& item) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : ", ") + item(std::to_string(i));
  return text;
}

class LinearTime : public DataTest {
 protected:
  // `prepare` writes the files for a size and gives what is timed.
  template <class Prepare>
  static void expect_linear(int n, Prepare prepare) {
    if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
    test::expect_linear([&](int size) { return test::cpu_seconds(prepare(size)); }, n / 4);
  }

  std::string model(int n) const {
    const std::string declared = list(n, [](const std::string& i) { return "\"i" + i + R"(": ["batch", 1])"; });
    const std::string rows = list(n, [](const std::string& i) { return "\"i" + i + "\": [[1], [2]]"; });
    const std::string fitted = list(n, [](const std::string& i) { return "\"i" + i + R"(": ["standardize"])"; });
    const std::string own =
        list(n, [](const std::string& i) { return "\"P" + i + R"(": {"shape": [1], "init": "zeros"})"; });
    write("model.json", R"({"format": 1, "data": {"train": {"inline": {"y": [[1], [2]], )" + rows +
                            R"(}}, "transform": {)" + fitted + R"(}}, "inputs": {"y": ["batch", 1], )" + declared +
                            R"(}, "parameters": {)" + own + R"j(}, "graph": ["p = i0 + P0", "loss = mse(p, y)"],
                            "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})j");
    return path("model.json");
  }

  // The weights of model(n), its parameters called `parameter`0, `parameter`1, …
  std::string weights(int n, const std::string& parameter) const {
    Arrays arrays;
    for (int i = 0; i < n; ++i) {
      arrays.emplace_back(parameter + std::to_string(i), HostTensor(DType::f32, {1}));
      for (const char* of : {":shift", ":scale"}) {
        arrays.emplace_back("i" + std::to_string(i) + of, HostTensor(DType::f64, {1}));
        arrays.back().second.elements<double>()[0] = 1;
      }
    }
    write("w.npz", data::npz_bytes(arrays));
    return path("w.npz");
  }
};

TEST_F(LinearTime, ManyInputsAndTheirNumbers) {
  expect_linear(2000, [&](int n) { return [path = model(n)] { load_model(path); }; });
}

TEST_F(LinearTime, ManyWeights) {
  expect_linear(2000, [&](int n) {
    LoadOptions options;
    options.weights = weights(n, "P");
    return [path = model(n), options] { load_model(path, options); };
  });
}

TEST_F(LinearTime, ManyWeightsOfOtherNames) {
  expect_linear(4000, [&](int n) {
    LoadOptions options;
    options.weights = weights(n, "Q");
    return [path = model(n), options] { EXPECT_THROW(load_model(path, options), Error); };
  });
}

TEST_F(LinearTime, ManyInputsWithoutAnArray) {
  expect_linear(4000, [&](int n) {
    const std::string block =
        R"({"train": {"inline": {)" + list(n, [](const std::string& i) { return "\"a" + i + "\": [1]"; }) + "}}}";
    inputs.clear();
    for (int i = 0; i < n; ++i) inputs.push_back({"i" + std::to_string(i), Shape{1}, DType::f32, false});
    return [this, block] { errors(block); };
  });
}

TEST_F(LinearTime, ManyColumns) {
  for (const char* missing : {"error", "mean"}) {
    SCOPED_TRACE(missing);
    // The data read must fit the processor's caches: beyond them the same number of accesses takes longer.
    expect_linear(10000, [&](int n) {
      const std::string gap = missing == std::string("mean") ? "" : "4";
      write("a.csv", list(n, [](const std::string& i) { return "c" + i; }) + "\n" +
                         list(n, [](const std::string& i) { return i; }) + "\n" +
                         list(n, [&](const std::string&) { return gap; }) + "\n");
      inputs = {{"x", Shape{n - 1}, DType::f32, false}, {"y", Shape{1}, DType::f32, true}};
      const std::string named = list(n - 1, [](const std::string& i) { return "\"c" + i + "\""; });
      const std::string y = "\"y\": \"c" + std::to_string(n - 1) + "\"";
      const std::string block = R"({"train": {"csv": "a.csv", "missing": ")" + std::string(missing) + "\", " + y +
                                ", \"x\": [" + named + "]}}";
      const std::string rest = R"({"train": {"csv": "a.csv", "missing": ")" + std::string(missing) + "\", " + y + "}}";
      return [this, block, rest] {
        read(block);
        read(rest);
      };
    });
  }
}

}  // namespace
}  // namespace graphrun
