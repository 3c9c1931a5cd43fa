#include "model_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(source_folder()) / "models";

// Files that a model or an override can name and that the repository does not have: they lie where scripts/get-data
// puts them or in the folder of data sets, or the test is skipped.
constexpr const char* kDataFiles[] = {"mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz",
                                      "mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz",
                                      "mnist/mlp_init.npz"};

}  // namespace

std::string data_folder() {
  const char* named = std::getenv("GRAPHRUN_TEST_DATA");
  return (named != nullptr ? fs::path(named) : fs::path(source_folder()) / ".." / "shared" / "data").string();
}

std::string data_file(const std::string& name) {
  const fs::path beside = kModels / name;
  return (fs::exists(beside) ? beside : fs::path(data_folder()) / name).string();
}

Overrides reference_start() {
  Overrides overrides;
  for (const char* name : {"W1", "b1", "W2", "b2", "W3", "b3"})
    overrides.emplace_back("parameters." + std::string(name) + ".init",
                           R"({"npz": "mnist/mlp_init.npz", "key": ")" + std::string(name) + R"("})");
  return overrides;
}

std::string data_is_missing(const std::string& model, const Overrides& overrides) {
  std::string text = read_file((kModels / (model + ".json")).string());
  for (const auto& [path, value] : overrides) text += value;
  for (const char* file : kDataFiles) {
    const std::string path = data_file(file);
    if (text.find('"' + std::string(file) + '"') != std::string::npos && !fs::exists(path))
      return "no data: " + path + " is not there; scripts/get-data fetches MNIST, bench/mlp_init.py makes mlp_init.npz";
  }
  return "";
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".json" && !name.ends_with(".schema")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Session open_model(const std::string& name, const std::string& executor, const Overrides& overrides) {
  LoadOptions load;
  load.data_dir = data_folder();
  load.overrides = overrides;
  SessionOptions options;
  options.executor = executor;
  return Session(load_model((kModels / (name + ".json")).string(), load), options);
}

Trained train(const std::string& name, const std::string& executor, const Overrides& overrides) {
  Session session = open_model(name, executor, overrides);
  Trained trained;
  trained.result = session.train();
  trained.train = session.evaluate("train");
  if (session.has_split("validation")) trained.validation = session.evaluate("validation");
  if (session.has_split("test")) trained.test = session.evaluate("test");
  trained.hash = session.weights_hash();
  return trained;
}

double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [known, value] : metrics.values) {
    if (known == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return std::nan("");
}

}  // namespace graphrun
