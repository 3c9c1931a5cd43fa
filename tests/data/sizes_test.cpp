// If the model states the number of rows, plan opens no data file and gives the same plan as with the data.
#include "data_fixture.h"
#include "graphrun/session.h"

namespace graphrun {
namespace {

class SizesTest : public DataTest {
 protected:
  DataSet sizes(const std::string& block, DataUse use = DataUse::sizes) const {
    DataOptions options;
    options.use = use;
    return read(block, options);
  }
  static std::vector<std::int64_t> samples(const DataSet& set) {
    std::vector<std::int64_t> all;
    for (const Split& split : set.splits) all.push_back(split.samples());
    return all;
  }

  // A model file over the data block of a test.
  std::string model(const std::string& data) const {
    write("model.json", R"js({"format": 1, "data": )js" + data + R"js(,
      "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
      "graph": [{"name": "z", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mse(z, y)"],
      "outputs": {"z": "y"},
      "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"adam": {"lr": 0.1}}, "epochs": 2}})js");
    return path("model.json");
  }
};

using Counts = std::vector<std::int64_t>;

TEST_F(SizesTest, DeclaredRowsNeedNoFile) {
  EXPECT_EQ(
      samples(sizes(
          R"js({"train": {"csv": "no.csv", "y": "y", "rows": 10}, "test": {"csv": "no.csv", "y": "y", "range": [4, 7]}})js")),
      (Counts{10, 3}));
  EXPECT_EQ(samples(sizes(R"js({"source": {"csv": "no.csv", "y": "y", "rows": 10}, "split": [0.55, 0.25, 0.2]})js")),
            (Counts{5, 2, 3}));
  EXPECT_EQ(
      samples(sizes(R"js({"train": {"npz": "no.npz", "rows": 5}, "validation": {"npz": "no.npz"}})js", DataUse::none)),
      (Counts{5}));
}

TEST_F(SizesTest, TablesOfTheModelAreNotDrawn) {
  const DataSet set =
      sizes(R"js({"train": {"random": {"rows": 1000000000, "columns": {"a": {"normal": 1, "shape": [2]}}},
      "x": "a", "y": "sum(sin(a), axis=1)"}, "test": {"grid": {"u": [0, 1, 30000], "v": [0, 1, 50000]},
      "x": ["u", "v"], "y": "u * v"}})js");
  EXPECT_EQ(samples(set), (Counts{1000000000, 1500000000}));
  EXPECT_TRUE(set.splits[0].columns.empty());
}

TEST_F(SizesTest, UndeclaredRowsAreReadForTheirSize) {
  write("a.csv", "a,b,y\n1,2,3\n4,5,6\n");
  EXPECT_EQ(samples(sizes(R"js({"train": {"csv": "a.csv", "y": "y"}})js")), (Counts{2}));
  EXPECT_TRUE(sizes(R"js({"train": {"csv": "a.csv", "y": "y"}})js", DataUse::none).splits.empty());
  EXPECT_THROW(sizes(R"js({"train": {"csv": "no.csv", "y": "y"}})js"), Error);
}

TEST_F(SizesTest, ErrorsThatNeedNoDataAreFound) {
  const auto errors_of = [&](const std::string& block) {
    DataOptions options;
    options.use = DataUse::none;
    return errors(block, options);
  };
  EXPECT_NE(errors_of(R"js({"train": {"csv": "no.csv", "rows": 3, "range": [0, 2]}})js")
                .find("/train/rows: 3 rows are declared, but the range has 2"),
            std::string::npos);
  EXPECT_NE(errors_of(R"js({"train": {"csv": "no.csv", "heder": true}})js").find("did you mean 'header'?"),
            std::string::npos);
  EXPECT_NE(errors_of(R"js({"train": {"inline": {"x": [[1, 2, 3]], "y": [1]}}})js").find("(batch, 3)"),
            std::string::npos);
  EXPECT_NE(errors_of(R"js({"train": {"grid": {"u": [0, 1, 9], "v": [0, 1, 9]}, "x": ["u", "v"], "y": "u @ v"}})js")
                .find("/train/y: matmul"),
            std::string::npos);
  EXPECT_NE(errors_of(R"js({"train": {"csv": "no.csv"}, "transform": {"x": ["standrdize"]}})js").find("/transform/x/0"),
            std::string::npos);
}

TEST_F(SizesTest, DeclaredRowsAreCheckedOnLoad) {
  write("a.csv", "a,b,y\n1,2,3\n4,5,6\n");
  EXPECT_NE(errors(R"js({"train": {"csv": "a.csv", "y": "y", "rows": 3}})js")
                .find("/train/rows: 3 rows are declared, but there are 2"),
            std::string::npos);
}

TEST_F(SizesTest, ThePlanIsTheOneThatTheDataGive) {
  std::string csv = "a,b,y\n";
  for (int i = 0; i < 50; ++i) csv += std::to_string(i) + ",3,1." + std::to_string(i * i) + "\n";
  write("a.csv", csv);
  const std::string standard = R"js("transform": {"x": ["standardize"], "y": ["standardize", {"scale": 0.5}]}})js";
  const std::string with_formula = R"js("x": ["a", "b"], "y": "y + a", )js";
  for (const std::string& data :
       {R"js({"source": {"csv": "a.csv", "rows": 50, "y": "y"}, "split": [0.6, 0.2, 0.2], )js" + standard,
        R"js({"train": {"csv": "a.csv", )js" + with_formula + R"js("rows": 50}, )js" + standard,
        R"js({"train": {"csv": "a.csv", "y": "y", "range": [0, 40]}, "test": {"csv": "a.csv", "y": "y"}, )js" +
            standard}) {
    const std::string file = model(data);
    LoadOptions options;
    options.data = DataUse::sizes;
    const Program declared = plan_program(load_model(file, options)), read = plan_program(load_model(file));
    EXPECT_EQ(declared.arena_bytes, read.arena_bytes) << data;
    ASSERT_EQ(declared.phases.size(), read.phases.size());
    for (std::size_t i = 0; i < read.phases.size(); ++i) {
      ASSERT_EQ(declared.phases[i].steps.size(), read.phases[i].steps.size()) << data;
      EXPECT_EQ(declared.phases[i].capacity, read.phases[i].capacity);
    }
    for (std::size_t i = 0; i < read.buffers.size(); ++i) {
      EXPECT_EQ(declared.buffers[i].name, read.buffers[i].name);
      EXPECT_EQ(declared.buffers[i].offset, read.buffers[i].offset);
    }
  }
}

TEST_F(SizesTest, AModelWithoutItsDataDoesNotRun) {
  const std::string file =
      model(R"js({"train": {"grid": {"u": [0, 1, 9], "v": [0, 1, 9]}, "x": ["u", "v"], "y": "u"}})js");
  LoadOptions options;
  options.data = DataUse::sizes;
  try {
    Session session(load_model(file, options));
    FAIL() << "a session without data";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "data.not_read");
  }
  options.data = DataUse::none;
  EXPECT_EQ(load_model(file, options).data.find("train")->samples(), 81);
  EXPECT_NO_THROW(load_model(model(R"js({"train": {"csv": "no.csv", "y": "y"}})js"), options));
}

}  // namespace
}  // namespace graphrun
