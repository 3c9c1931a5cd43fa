// data_fixture.h: a folder of data files for one test, and read_data() on a "data" block written as text.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/formats/png.h"
#include "graphrun/error.h"
#include "session/formulas.h"
#include "support/temporary_folder.h"

namespace graphrun {

class DataTest : public testing::Test {
 protected:
  DataTest() { unsetenv("GRAPHRUN_DATA"); }

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, const std::string& bytes) const { own_.write(name, bytes); }

  // Reads the block and throws Error when anything was reported.
  DataSet read(const std::string& block, DataOptions options = {}) const {
    if (options.model_dir.empty() && options.data_dir.empty()) options.model_dir = folder_;
    const json::Document document = json::parse("model.json", block);
    json::Reader reader(document);
    options.formulas = &formulas_;
    DataSet set = read_data(reader, reader.root(), inputs, options);
    reader.throw_if_failed();
    return set;
  }

  // All messages of an invalid block, with the folder of the test as DIR.
  std::string errors(const std::string& block, const DataOptions& options = {}) const {
    try {
      read(block, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder_)) != std::string::npos;) text.replace(at, folder_.size(), "DIR");
      return text;
    }
    return "no mistake was found";
  }

  static std::vector<float> values(const DataSet& set, const std::string& split, const std::string& input) {
    return elements<float>(set, split, input);
  }
  template <class T>
  static std::vector<T> elements(const DataSet& set, const std::string& split, const std::string& input) {
    const HostTensor& tensor = column(set, split, input);
    return {tensor.elements<T>().begin(), tensor.elements<T>().end()};
  }
  static const HostTensor& column(const DataSet& set, const std::string& split, const std::string& input) {
    const Split* found = set.find(split);
    if (!found) throw std::runtime_error("no split " + split);
    for (const auto& [name, tensor] : found->columns) {
      if (name == input) return tensor;
    }
    throw std::runtime_error("no input " + input);
  }

  std::vector<InputDecl> inputs = {{"x", Shape{2}, DType::f32, false}, {"y", Shape{1}, DType::f32, true}};

 private:
  const test::TemporaryFolder own_;
  const std::string folder_ = own_.path().string();
  ModelFormulas formulas_{{{"gain", 1.5}}, Precision::fp32};
};

using Floats = std::vector<float>;

// Whether libpng is part of this build and loads.
inline bool reads_png() {
  try {
    data::read_png("a", "\x89PNG\r\n\x1a\n", {}, nullptr);
  } catch (const Error& error) {
    return std::string(error.what()).find("damaged") != std::string::npos;
  }
  return false;
}

}  // namespace graphrun
