// ONNX files: what is exported comes back as the same predictions; files of others, whole and damaged.
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "deployments.h"
#include "export/onnx/import.h"
#include "export/onnx/onnx_file.h"
#include "graphrun/error.h"
#include "support/rounds.h"

namespace graphrun {
namespace {

using onnx::attribute;
using onnx::DataType;

std::string exported(Session& session) {
  return onnx_model(deployment(session, {.rows = 3, .views = false, .examples = 1}));
}

Session opened(const ImportedModel& model) {
  LoadOptions load;
  load.predicts = 1;
  Session session = test::on_ref(load_model(test::write_model(model.text), load));
  for (const auto& [name, value] : model.parameters) session.write(name, value);
  return session;
}

onnx::Tensor weights(const std::string& name, Shape shape, std::vector<float> values) {
  return onnx::tensor(name, HostTensor(shape, values));
}

// relu(x @ W + b), as PyTorch writes a Linear layer.
onnx::File small() {
  onnx::File file;
  file.name = "small";
  file.opset = 17;
  file.inputs = {{"x", DataType::f32, {{0, "N"}, {2, ""}}}};
  file.outputs = {{"y", DataType::f32, {{0, "N"}, {3, ""}}}};
  file.initializers = {weights("fc.weight", {3, 2}, {1, 2, 3, 4, 5, 6}), weights("fc.bias", {3}, {-4, 0.5f, 1})};
  file.nodes = {
      {"/fc/Gemm", "Gemm", "", {"x", "fc.weight", "fc.bias"}, {"/fc/out"}, {attribute("transB", std::int64_t{1})}},
      {"relu", "Relu", "", {"/fc/out"}, {"y"}, {}}};
  return file;
}

std::vector<Diagnostic> errors(const std::string& bytes) {
  try {
    onnx::imported(bytes, "net.onnx");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.diagnostics();
  }
  return {};
}

TEST(OnnxImport, ReadsADenseLayer) {
  Session session = opened(onnx::imported(onnx::encode(small()), "net.onnx"));
  const std::vector<float> x = {1, 1, -1, 0};
  const HostTensor y = session.predict({{"x", HostTensor({2, 2}, x)}});
  const std::vector<float> expected = {0, 7.5, 12, 0, 0, 0};
  ASSERT_EQ(y.shape(), (Shape{2, 3}));
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y.elements<float>()[i], expected[i]) << i;
}

// y = x @ W @ transpose(W), as an autoencoder with tied weights has it: one parameter.
TEST(OnnxImport, TiedWeightsStayOne) {
  onnx::File file = small();
  file.outputs = {{"y", DataType::f32, {{0, "N"}, {2, ""}}}};
  file.initializers = {weights("W", {2, 3}, {1, 2, 3, 4, 5, 6})};
  file.nodes = {{"encoder", "Gemm", "", {"x", "W"}, {"h"}, {}},
                {"decoder", "Gemm", "", {"h", "W"}, {"y"}, {attribute("transB", std::int64_t{1})}}};
  const ImportedModel imported = onnx::imported(onnx::encode(file), "net.onnx");
  EXPECT_EQ(imported.parameters.size(), 1u);
  Session session = opened(imported);
  const std::vector<float> x = {1, -1};
  const HostTensor y = session.predict({{"x", HostTensor({1, 2}, x)}});
  EXPECT_EQ(y.elements<float>()[0], -18);
  EXPECT_EQ(y.elements<float>()[1], -45);
}

// Each use of the weight, in any order and through copies and transposes: still one parameter.
TEST(OnnxImport, ASharedWeightIsOneParameter) {
  using Nodes = std::vector<onnx::Node>;
  const onnx::Attribute transposed = attribute("transB", std::int64_t{1});
  const std::vector<Nodes> all = {
      {{"", "Gemm", "", {"x", "W", "b"}, {"p"}, {transposed}}, {"", "Gemm", "", {"z", "W", "b"}, {"q"}, {transposed}}},
      {{"", "Gemm", "", {"x", "W", "b"}, {"p"}, {}}, {"", "Gemm", "", {"z", "W", "b"}, {"q"}, {transposed}}},
      {{"", "Gemm", "", {"x", "W", "b"}, {"p"}, {transposed}}, {"", "Gemm", "", {"z", "W", "b"}, {"q"}, {}}},
      {{"", "Gemm", "", {"x", "W", "b"}, {"p"}, {transposed, attribute("alpha", 2.0f), attribute("beta", 3.0f)}},
       {"", "MatMul", "", {"z", "W"}, {"q"}, {}}},
      {{"", "MatMul", "", {"x", "W"}, {"m"}, {}},
       {"", "Add", "", {"m", "b"}, {"p"}, {}},
       {"", "Transpose", "", {"W"}, {"T"}, {}},
       {"", "Identity", "", {"T"}, {"U"}, {}},
       {"", "MatMul", "", {"z", "U"}, {"q"}, {}}},
      {{"", "Identity", "", {"W"}, {"V"}, {}},
       {"", "Gemm", "", {"x", "V", "b"}, {"m"}, {}},
       {"", "Gemm", "", {"m", "W"}, {"p"}, {transposed}},
       {"", "Gemm", "", {"z", "W"}, {"q"}, {}}}};
  const float w[2][2] = {{1, 2}, {3, 4}}, b[2] = {5, 6}, x[2] = {1, -1}, z[2] = {2, 0.5f};
  // (x @ w or x @ transpose(w)) * alpha + b * beta
  const auto product = [&](std::vector<float> of, bool flip, float alpha, float beta) {
    std::vector<float> y(2);
    for (std::size_t j = 0; j < 2; ++j)
      y[j] = alpha * (of[0] * (flip ? w[j][0] : w[0][j]) + of[1] * (flip ? w[j][1] : w[1][j])) + beta * b[j];
    return y;
  };
  const std::vector<float> xs(x, x + 2), zs(z, z + 2);
  const std::vector<std::pair<std::vector<float>, std::vector<float>>> expected = {
      {product(xs, true, 1, 1), product(zs, true, 1, 1)},
      {product(xs, false, 1, 1), product(zs, true, 1, 1)},
      {product(xs, true, 1, 1), product(zs, false, 1, 1)},
      {product(xs, true, 2, 3), product(zs, false, 1, 0)},
      {product(xs, false, 1, 1), product(zs, true, 1, 0)},
      {product(product(xs, false, 1, 1), true, 1, 0), product(zs, false, 1, 0)}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    onnx::File file = small();
    file.inputs.push_back({"z", DataType::f32, {{0, "N"}, {2, ""}}});
    file.initializers = {weights("W", {2, 2}, {1, 2, 3, 4}), weights("b", {2}, {5, 6})};
    file.nodes = all[i];
    file.nodes.push_back({"", "Sub", "", {"p", "q"}, {"y"}, {}});
    const ImportedModel imported = onnx::imported(onnx::encode(file), "net.onnx");
    EXPECT_EQ(imported.parameters.size(), 2u) << imported.text;
    EXPECT_EQ(imported.parameters[0].first, "W");
    Session session = opened(imported);
    const HostTensor y = session.predict({{"x", HostTensor({1, 2}, xs)}, {"z", HostTensor({1, 2}, zs)}});
    for (std::size_t j = 0; j < 2; ++j)
      EXPECT_EQ(y.elements<float>()[j], expected[i].first[j] - expected[i].second[j]) << imported.text;
  }
}

// Files for a batch of one: what keeps the 1 in front keeps the batch.
TEST(OnnxImport, ABatchOfOneIsTheBatch) {
  const auto read = [](std::int64_t rows, std::vector<std::int64_t> shape, std::int64_t axis) {
    onnx::File file;
    file.opset = 17;
    file.inputs = {{"x", DataType::f32, {{rows, ""}, {2, ""}, {3, ""}}}};
    file.outputs = {{"y", DataType::f32, {}}};
    file.initializers = {weights("W", {6, 1}, {1, 2, 3, 4, 5, 6}),
                         onnx::tensor("shape", shape.empty() ? std::vector<std::int64_t>{0} : shape)};
    file.nodes = {shape.empty() ? onnx::Node{"f", "Flatten", "", {"x"}, {"v"}, {attribute("axis", axis)}}
                                : onnx::Node{"f", "Reshape", "", {"x", "shape"}, {"v"}, {}},
                  {"m", "MatMul", "", {"v", "W"}, {"y"}, {}}};
    return onnx::encode(file);
  };
  const std::vector<float> x = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{1, -1}, {1, 6}, {-1, 6}, {0, -1}, {}}) {
    for (const std::int64_t axis : {0, 1, -2}) {
      Session session = opened(onnx::imported(read(1, shape, axis), "net.onnx"));
      const HostTensor y = session.predict({{"x", HostTensor({2, 2, 3}, x)}});
      ASSERT_EQ(y.shape(), (Shape{2, 1}));
      EXPECT_EQ(y.elements<float>()[0], 1);
      EXPECT_EQ(y.elements<float>()[1], 6);
    }
  }
  EXPECT_TRUE(errors(read(4, {4, -1}, 1)).empty());
  for (const auto& bytes : {read(1, {-1}, 1), read(1, {2, -1}, 1), read(4, {1, -1}, 1), read(4, {}, 0)}) {
    const std::vector<Diagnostic> found = errors(bytes);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].message.find("dynamic"), std::string::npos) << found[0].message;
  }
}

// Imports know no convolutions.
std::vector<std::string> round_trips() {
  std::vector<std::string> names = test::model_names_to_export();
  std::erase(names, "digits_cnn"), std::erase(names, "mnist_lenet");
  return names;
}

class OnnxRoundTrip : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, OnnxRoundTrip, testing::ValuesIn(round_trips()),
                         [](const auto& run) { return run.param; });

TEST_P(OnnxRoundTrip, PredictsTheSame) {
  Session session = test::model_session(GetParam());
  Session back = opened(onnx::imported(exported(session), "net.onnx"));
  const Deployment tried = deployment(session, {.rows = 3, .views = true, .examples = 16});
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (std::size_t i = 0; i < tried.inputs.size(); ++i)
    inputs.emplace_back(tried.inputs[i].name, tried.example_inputs[i]);
  const auto results = back.predict_all(inputs);
  ASSERT_EQ(results.size(), tried.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto got = results[i].second.elements<float>(), wanted = tried.example_outputs[i].elements<float>();
    ASSERT_EQ(got.size(), wanted.size());
    // Imported transforms are computed in f32.
    for (std::size_t j = 0; j < got.size(); ++j)
      ASSERT_NEAR(got[j], wanted[j], 1e-3 * std::max(1.0f, std::abs(wanted[j]))) << j;
  }
}

TEST(OnnxExport, SaysEveryOpAndTheSameBytesTwice) {
  Session session = test::odd_session();
  const std::string bytes = exported(session);
  EXPECT_EQ(bytes, exported(session));
  const onnx::File file = onnx::decode(bytes, "net.onnx");
  EXPECT_EQ(file.opset, 17);
  ASSERT_EQ(file.inputs.size(), 2u);
  EXPECT_EQ(file.inputs[0].dims[0].symbol, "batch");
  EXPECT_EQ(file.outputs.size(), 21u);
  std::set<std::string> given;
  for (const onnx::ValueInfo& input : file.inputs) given.insert(input.name);
  for (const onnx::Tensor& tensor : file.initializers) EXPECT_TRUE(given.insert(tensor.name).second) << tensor.name;
  for (const onnx::Node& node : file.nodes) {  // in order, each value once
    for (const std::string& input : node.inputs) EXPECT_TRUE(given.contains(input)) << node.name << ": " << input;
    for (const std::string& output : node.outputs) EXPECT_TRUE(given.insert(output).second) << output;
  }
  for (const onnx::ValueInfo& output : file.outputs) EXPECT_TRUE(given.contains(output.name)) << output.name;
}

TEST(OnnxImport, ListsEveryUnsupportedNode) {
  onnx::File file = small();
  file.nodes = {{"resize", "Resize", "", {"x", "fc.weight", "fc.weight"}, {"c"}, {}},
                {"fine", "Relu", "", {"c"}, {"r"}, {}},
                {"lstm", "LSTM", "", {"r"}, {"l"}, {}},
                {"side", "TopK", "", {"x"}, {"unused"}, {}},
                {"gemm", "Gemm", "", {"x", "fc.weight"}, {"g"}, {attribute("transA", std::int64_t{1})}},
                {"sum", "Add", "", {"l", "g"}, {"y"}, {}}};
  const std::vector<Diagnostic> found = errors(onnx::encode(file));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].message, "node 'resize' (Resize): it is not supported");
  EXPECT_NE(found[0].hint.find("Gemm MatMul Add"), std::string::npos);
  EXPECT_EQ(found[1].message, "node 'lstm' (LSTM): it is not supported");
  EXPECT_EQ(found[1].hint, "");  // once is enough
  EXPECT_EQ(found[2].message, "node 'gemm' (Gemm): transA is set");
}

// reference/onnx_files.py compares imported convolutions with onnxruntime.
TEST(OnnxImport, ReportsConvolutionsThatItCannotRead) {
  const auto message = [](std::vector<onnx::Attribute> attributes, Shape weights, const char* op = "Conv") {
    onnx::File file = small();
    file.inputs[0].dims = {{0, "batch"}, {2, ""}, {5, ""}};
    file.initializers = {onnx::tensor("w", HostTensor(DType::f32, weights))};
    std::vector<std::string> inputs = {"x"};
    if (std::string(op) == "Conv") inputs.push_back("w");
    file.nodes = {{"n", op, "", inputs, {"y"}, std::move(attributes)}};
    return errors(onnx::encode(file)).at(0).message;
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(message({}, {3, 2}), "node 'n' (Conv): its weights do not fit its input");
  EXPECT_EQ(message({}, {3, 2, 6}), "node 'n' (Conv): its windows do not fit its input");
  EXPECT_EQ(message({attribute("strides", List{0})}, {3, 2, 3}), "node 'n' (Conv): its windows do not fit its input");
  EXPECT_EQ(message({attribute("pads", List{-1, 0})}, {3, 2, 3}), "node 'n' (Conv): its windows do not fit its input");
  EXPECT_EQ(message({attribute("group", std::int64_t{2})}, {3, 2, 3}),
            "node 'n' (Conv): its groups do not fit its weights");
  EXPECT_EQ(
      message({attribute("ceil_mode", std::int64_t{1}), attribute("kernel_shape", List{2})}, {1, 1, 1}, "MaxPool"),
      "node 'n' (MaxPool): its ceil_mode is set");
  EXPECT_EQ(message({}, {1, 1, 1}, "MaxPool"), "node 'n' (MaxPool): its windows do not fit its input");
  EXPECT_EQ(message({attribute("pads", List{1, 1}), attribute("kernel_shape", List{2})}, {1, 1, 1}, "AveragePool"),
            "node 'n' (AveragePool): it does not count its padding");
}

TEST(OnnxImport, RejectsWhatIsNoGraph) {
  onnx::File cycle = small();
  cycle.nodes[0].inputs[0] = "y";
  ASSERT_FALSE(errors(onnx::encode(cycle)).empty());
  EXPECT_EQ(errors(onnx::encode(cycle))[0].message,
            "node '/fc/Gemm' (Gemm): it reads 'y', which no earlier node gives");

  onnx::File bare = small();
  bare.nodes = {{"relu", "Relu", "", {"x"}, {"y"}, {}}};
  ASSERT_EQ(errors(onnx::encode(bare)).size(), 1u);
  EXPECT_EQ(errors(onnx::encode(bare))[0].message, "no output depends on weights, and a model has something to train");

  onnx::File slope = small();
  slope.nodes[1] = {"leaky", "LeakyRelu", "", {"/fc/out"}, {"y"}, {attribute("alpha", std::nanf(""))}};
  ASSERT_EQ(errors(onnx::encode(slope)).size(), 1u);
  EXPECT_EQ(errors(onnx::encode(slope))[0].message, "node 'leaky' (LeakyRelu): its alpha is nan");

  onnx::File twice = small();
  twice.nodes.push_back(twice.nodes.back());
  ASSERT_EQ(errors(onnx::encode(twice)).size(), 1u);
  EXPECT_EQ(errors(onnx::encode(twice))[0].message, "'y' is given twice");

  onnx::File no_output = small();
  no_output.outputs[0].name = "z";
  ASSERT_EQ(errors(onnx::encode(no_output)).size(), 1u);
  EXPECT_EQ(errors(onnx::encode(no_output))[0].message, "no node gives the output 'z'");

  onnx::File lie = small();
  lie.initializers[0].dims = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  ASSERT_EQ(errors(onnx::encode(lie)).size(), 1u);
  EXPECT_NE(errors(onnx::encode(lie))[0].message.find("elements by its shape, 6 in the file"), std::string::npos);

  onnx::File nan = small();
  nan.initializers[1] = weights("fc.bias", {3}, {0, NAN, 0});
  ASSERT_EQ(errors(onnx::encode(nan)).size(), 1u);
  EXPECT_EQ(errors(onnx::encode(nan))[0].code, "onnx.value");

  for (const std::string& bytes : {std::string(), std::string("not onnx"), std::string(100, '\xff'),
                                   std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10)}) {
    ASSERT_EQ(errors(bytes).size(), 1u) << bytes;
    EXPECT_EQ(errors(bytes)[0].code, "onnx.file");
    EXPECT_EQ(errors(bytes)[0].file, "net.onnx");
  }
}

TEST(OnnxImport, EveryTruncationIsAnErrorOrAModel) {
  const std::string whole = onnx::encode(small());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      onnx::imported(whole.substr(0, size), "net.onnx");
    } catch (const Error&) {
    }
  }
}

// GRAPHRUN_FUZZ=100000 test_export --gtest_filter='*Mutants*' is the long run. A file that is read is a model, too.
TEST(OnnxImport, MutantsAreErrorsOrModels) {
  const std::string whole = onnx::encode(small());
  const Stream stream = Stream::named(1, "onnx mutants");
  int read = 0, rejected = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    std::string bytes = whole;
    const auto words = stream.block(1, static_cast<std::uint64_t>(round));
    for (std::size_t change = 0; change < 1 + words[3] % 3; ++change) {
      const std::size_t at = (words[0] + change * 7919) % bytes.size();
      if (words[1] % 4 == 0)
        bytes.erase(at, 1 + words[2] % 5);
      else if (words[1] % 4 == 1)
        bytes.insert(at, std::string(1 + words[2] % 9, static_cast<char>(words[2] >> 8)));
      else
        bytes[at] = static_cast<char>(words[2] >> (8 * change));
    }
    ImportedModel model;
    try {
      model = onnx::imported(bytes, "net.onnx");
      opened(model);
      ++read;
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace graphrun
