// `graphrun export-c`, `export-onnx` and `import-onnx`: atomic writes, and unsupported models.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "data/archives.h"
#include "fixture.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

class Export : public Cli {
 protected:
  Export() { graphrun({model_, "--quiet", "--epochs=3", "--save-weights", path("line.safetensors")}); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
};

TEST_F(Export, CGoesToAFileOrToStdout) {
  const Outcome written = graphrun({"export-c", path("line.safetensors"), "-o", path("net.c")});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_NE(test::content_of(path("net.c")).find("void net_predict(void *arena, const float *x, float *p)"),
            std::string::npos);
  const Outcome printed = graphrun({"export-c", path("line.safetensors")});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_NE(printed.out.find("void line_predict("), std::string::npos);
}

TEST_F(Export, TakesAModelWithWeights) {
  graphrun({model_, "--quiet", "--epochs=3", "--save-weights", path("line.npz")});
  const Outcome one = graphrun({"export-c", model_, "--weights", path("line.npz")});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, graphrun({"export-c", path("line.safetensors")}).out);
  const Outcome without = graphrun({"export-c", model_});
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("export-c has no weights"), std::string::npos) << without.err;
}

TEST_F(Export, OnnxComesBack) {
  ASSERT_EQ(graphrun({"export-onnx", path("line.safetensors"), "-o", path("net.onnx")}).code, 0);
  const Outcome read = graphrun({"import-onnx", path("net.onnx"), "-o", path("back.safetensors")});
  EXPECT_EQ(read.code, 0) << read.err;
  const std::string rows = file("rows.csv", "x\n2\n-1\n");
  const Outcome mine = graphrun({"predict", path("line.safetensors"), rows, "--executor=ref"});
  const Outcome back = graphrun({"predict", path("back.safetensors"), rows, "--executor=ref"});
  ASSERT_EQ(mine.code, 0) << mine.err;
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(mine.out.substr(mine.out.find('\n')), back.out.substr(back.out.find('\n')));
}

// The exported function takes the columns of the table; the comment at the top describes them.
TEST_F(Export, TakesTheColumnsOfATable) {
  file("flats.csv", "area,city,rent\n10,Rome,1\n20,Oslo,2\n30,Rome,3\n,Oslo,2\n");
  const std::string model = file("flats.json", R"j({"format": 1,
    "data": {"train": {"csv": "flats.csv", "missing": {"area": "median"}, "x": ["area", "city"], "y": "rent"},
             "transform": {"area": ["standardize"], "city": [{"one_hot": ["Oslo", "Rome"]}]}},
    "inputs": {"x": ["batch", 3], "y": ["batch", 1]},
    "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean(square(p - y))"],
    "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "batch": 4, "epochs": 1}})j");
  ASSERT_EQ(graphrun({model, "--quiet", "--save-weights", path("flats.safetensors")}).code, 0);
  const Outcome c = graphrun({"export-c", path("flats.safetensors")});
  ASSERT_EQ(c.code, 0) << c.err;
  for (const char* line : {"\n   input     row->area: number; NaN: missing, area becomes 20\n",
                           "\n   input     row->city: code of a category, an index of flats_city\n",
                           "\nvoid flats_predict(void *arena, const flats_row *row, float *p);\n"})
    EXPECT_NE(c.out.find(line), std::string::npos) << line << " is missing:\n" << c.out.substr(0, 1000);
  EXPECT_EQ(c.err, "");
  const Outcome onnx = graphrun({"export-onnx", path("flats.safetensors"), "-o", path("flats.onnx")});
  ASSERT_EQ(onnx.code, 0) << onnx.err;
  EXPECT_NE(test::content_of(path("flats.onnx")).find("LabelEncoder"), std::string::npos);
  const Outcome read = graphrun({"import-onnx", path("flats.onnx"), "-o", path("back.safetensors")});
  EXPECT_NE(read.err.find("LabelEncoder"), std::string::npos) << read.err;
  EXPECT_EQ(graphrun({"export-c", path("line.safetensors")}).err, "");
}

// Convolutions, pooling and a transposed convolution, exported by PyTorch: reference/cnn_torch.py.
TEST_F(Export, ImportsANetworkOfPyTorchAndTrainsOn) {
  std::string x, wanted;
  for (int i = 0; i < 128; ++i) x += test::raw<float>({std::sin(static_cast<float>(i))});
  for (const float y : {0.5f, 0.25f, 0.0f, -0.5f, 0.0f, 1.0f}) wanted += test::raw<float>({y});
  file("x.npy", test::npy("<f4", "(2, 1, 8, 8)", x));
  file("y.npy", test::npy("<f4", "(2, 3)", wanted));
  const std::string weights = path("cnn.safetensors"), trained = path("trained.safetensors");
  const Outcome import = graphrun({"import-onnx", source_folder() + "/tests/reference/cnn_torch.onnx", "-o", weights});
  ASSERT_EQ(import.code, 0) << import.err;
  const Outcome predicted = graphrun({"predict", weights, path("x.npy")});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const char* at = predicted.out.c_str() + predicted.out.find('\n') + 1;
  for (const double by_torch : {0.05898136, -0.00846039, -0.17411701, 0.0636408, -0.00952869, -0.17756353}) {
    char* end = nullptr;
    EXPECT_NEAR(std::strtod(at, &end), by_torch, 1e-6) << predicted.out;
    at = end + 1;
  }
  const Outcome model = graphrun({"show", weights, "--json"});
  file("model.json", model.out);
  const Outcome further = graphrun({"train", path("model.json"), "--weights", weights, "--save-weights", trained,
                                    "--epochs", "200", "--batch", "2", "--set",
                                    R"(data={"train": {"npy": {"x": "x.npy", "logits_target": "y.npy"}}})", "--json"});
  ASSERT_EQ(further.code, 0) << further.err;
  const std::size_t loss = further.out.find("\"loss\":");
  ASSERT_NE(loss, std::string::npos) << further.out;
  EXPECT_LT(std::atof(further.out.c_str() + loss + 7), 0.01) << further.out;
}

TEST_F(Export, NeverReplacesWhatItReads) {
  const std::string before = test::content_of(path("line.safetensors"));
  const Outcome same = graphrun({"export-c", path("line.safetensors"), "-o", path("line.safetensors")});
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("is a file that is read"), std::string::npos) << same.err;
  EXPECT_EQ(test::content_of(path("line.safetensors")), before);
}

TEST_F(Export, LeavesAnOldFileWhereItFails) {
  const std::string old = file("net.c", "old"), bad = file("bad.onnx", "not onnx"), kept = file("k.safetensors", "old");
  EXPECT_EQ(graphrun({"export-c", model_, "-o", old}).code, 2);
  EXPECT_EQ(test::content_of(old), "old");
  const Outcome read = graphrun({"import-onnx", bad, "-o", kept});
  EXPECT_EQ(read.code, 2);
  EXPECT_NE(read.err.find("bad.onnx: not an ONNX file"), std::string::npos) << read.err;
  EXPECT_EQ(test::content_of(kept), "old");
  EXPECT_EQ(graphrun({"import-onnx", path("missing.onnx"), "-o", kept}).code, 2);
  EXPECT_EQ(graphrun({"import-onnx", folder_.string(), "-o", kept}).code, 2);
  EXPECT_EQ(graphrun({"export-c", path("line.safetensors"), "-o", path("no/such/net.c")}).code, 2);
  EXPECT_EQ(graphrun({"export-c", path("line.safetensors"), "-o", "/dev/full"}).code, 1);
}

TEST_F(Export, ImportNeedsASafetensorsFile) {
  const Outcome rejected = graphrun({"import-onnx", file("a.onnx", ""), "-o", path("a.npz")});
  EXPECT_EQ(rejected.code, 2);
  EXPECT_NE(rejected.err.find("import-onnx needs --output FILE.safetensors"), std::string::npos) << rejected.err;
}

}  // namespace
}  // namespace graphrun::testing
