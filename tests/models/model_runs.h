// model_runs.h: training the models of models/ in a test: where they and their data are, and what came out.
// Contract: train() throws Error as the library does; a test that needs data asks data_is_missing() first and skips
// with what it says. Leaves to others: which figures a model must reach (models_test.cpp, losses_test.cpp,
// memory_test.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graphrun/session.h"
#include "support/rounds.h"
#include "support/sanitized.h"

namespace graphrun {

using Overrides = std::vector<std::pair<std::string, std::string>>;

std::string data_folder();  // GRAPHRUN_TEST_DATA, else shared/data beside the checkout; it need not exist
std::string data_file(const std::string& name);  // beside the models, else in data_folder()

// The start of mnist_mlp's reference: what its losses are compared with, and no part of the model.
Overrides reference_start();

// "" when the model can be trained here, else the reason for skipping its test.
std::string data_is_missing(const std::string& model, const Overrides& overrides = {});

std::vector<std::string> model_names();  // of every file in models/, in order
Session open_model(const std::string& name, const std::string& executor, const Overrides& overrides = {});

struct Trained {
  TrainResult result;
  Metrics train, validation, test;  // of the splits that there are
  std::string hash;
};
Trained train(const std::string& name, const std::string& executor, const Overrides& overrides = {});

double metric(const Metrics& metrics, std::string_view name);  // a test failure and NaN when it is not there

}  // namespace graphrun

#define GRAPHRUN_SKIP_WITHOUT_DATA(...) \
  if (const std::string missing = graphrun::data_is_missing(__VA_ARGS__); !missing.empty()) GTEST_SKIP() << missing

#define GRAPHRUN_REF_AT_NIGHT(executor)                               \
  if (std::string(executor) == "ref" && !graphrun::test::all_cases()) \
  GTEST_SKIP() << "a whole training on ref takes long: runs in scripts/test --nightly"

#define GRAPHRUN_SKIP_WHEN_SANITIZED() \
  if (graphrun::test::kSanitized) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one"
