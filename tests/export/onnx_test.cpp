// ONNX files: what is exported comes back as the same predictions; files of others, whole and damaged.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/philox.h"
#include "deployments.h"
#include "export/onnx/import.h"
#include "export/onnx/import_ops.h"
#include "export/onnx/onnx_file.h"
#include "graphrun/elements.h"
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

// Bounds of clamp(min=0.5) in torch, and a bias of a file in half precision: 0.5, -2, and the smallest subnormal.
TEST(OnnxImport, ReadsOpenBoundsAndHalfPrecision) {
  onnx::File file = small();
  file.initializers[1].type = DataType::f16;
  file.initializers[1].raw = std::string("\x00\x38\x00\xc0\x01\x00", 6);
  const float infinity = std::numeric_limits<float>::infinity();
  file.initializers.push_back(weights("low", {}, {0.5f}));
  file.initializers.push_back(weights("high", {}, {infinity}));
  file.nodes[1] = {"clip", "Clip", "", {"/fc/out", "low", "high"}, {"y"}, {}};
  const std::vector<float> x = {1, 0};
  HostTensor y = opened(onnx::imported(onnx::encode(file), "net.onnx")).predict({{"x", HostTensor({1, 2}, x)}});
  EXPECT_EQ(y.elements<float>()[0], 1.5f);
  EXPECT_EQ(y.elements<float>()[1], 1);
  EXPECT_EQ(y.elements<float>()[2], 5 + 0x1p-24f);
  file.opset = 6;  // bounds are attributes
  file.nodes[1].inputs.resize(1);
  file.nodes[1].attributes = {attribute("min", -infinity), attribute("max", 1.25f)};
  y = opened(onnx::imported(onnx::encode(file), "net.onnx")).predict({{"x", HostTensor({1, 2}, x)}});
  EXPECT_EQ(y.elements<float>()[0], 1.25f);
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
  for (const auto& bytes : {read(1, {2, -1}, 1), read(4, {1, -1}, 1), read(4, {}, 0)}) {
    const std::vector<Diagnostic> found = errors(bytes);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].message.find("dynamic"), std::string::npos) << found[0].message;
  }
}

// Exports write convolutions as lookups in computed tables, which imports do not read.
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

// reference/onnx_files.py compares exported folds with onnxruntime.
TEST(OnnxRoundTrip, OfFold) {
  Session session = test::formulas_session(
      R"j("f = fold(reshape(x, shape=[-1, 2, 2, 3]), extents=[7], size=[2], stride=[3], dilation=[2])",
          "g = fold(reshape(x, shape=[-1, 1, 2, 2, 3, 1]), extents=[3, 5], size=[2, 3], stride=[2, 2])")j",
      R"j("f", "g")j");
  Session back = opened(onnx::imported(exported(session), "net.onnx"));
  HostTensor x(DType::f32, Shape{5, 4, 3});
  for (std::size_t i = 0; i < x.elements<float>().size(); ++i) x.elements<float>()[i] = static_cast<float>(i % 7);
  const auto wanted = session.predict_all({{"x", x}}), got = back.predict_all({{"x", x}});
  ASSERT_EQ(got.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].second.shape(), wanted[i].second.shape());
    EXPECT_TRUE(std::ranges::equal(got[i].second.bytes(), wanted[i].second.bytes()));
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
  EXPECT_NE(found[0].hint.find("Gelu Gemm "), std::string::npos);
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
    if (std::string(op).starts_with("Conv")) inputs.push_back("w");
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
  EXPECT_EQ(message({}, {1, 1, 1}, "MaxPool"), "node 'n' (MaxPool): its windows do not fit its input");
  const auto transposed = [&](std::vector<onnx::Attribute> attributes, Shape weights = {2, 3, 2}) {
    return message(std::move(attributes), weights, "ConvTranspose");
  };
  EXPECT_EQ(transposed({}, {3, 2, 2}), "node 'n' (ConvTranspose): its groups do not fit its weights");
  EXPECT_EQ(transposed({}, {2, 2}), "node 'n' (ConvTranspose): its weights do not fit its input");
  for (const char* name : {"strides", "dilations"})
    EXPECT_EQ(transposed({attribute(name, List{0})}), "node 'n' (ConvTranspose): its windows do not fit its input");
  EXPECT_EQ(transposed({attribute("pads", List{3, 3})}), "node 'n' (ConvTranspose): its windows do not fit its input");
  EXPECT_EQ(transposed({attribute("output_shape", List{7})}), "node 'n' (ConvTranspose): its padding is negative");
  EXPECT_EQ(message({attribute("kernel_shape", List{2}), attribute("p", std::int64_t{0})}, {1, 1, 1}, "LpPool"),
            "node 'n' (LpPool): its p is not positive");
}

TEST(OnnxImport, RejectsWhatIsNoGraph) {
  onnx::File cycle = small();
  cycle.nodes[0].inputs[0] = "y";
  ASSERT_FALSE(errors(onnx::encode(cycle)).empty());
  EXPECT_EQ(errors(onnx::encode(cycle))[0].message,
            "node '/fc/Gemm' (Gemm): it reads 'y', which no earlier node gives");

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

// The file ends with the version of the op set, 6 bytes: without it, the model has a default one.
TEST(OnnxImport, EveryTruncationIsAnError) {
  const std::string whole = onnx::encode(small());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<Diagnostic> found = errors(whole.substr(0, size));
    ASSERT_EQ(found.size(), size == whole.size() - 6 ? 0u : 1u) << size << " of " << whole.size() << " bytes";
    if (!found.empty()) {
      EXPECT_EQ(found[0].code, "onnx.file") << size;
    }
  }
}

// Values of a node, by the name of its op. The node reads x (batch, 2, 3), and constants of the given names.
std::vector<float> value_of(const std::string& op, std::vector<std::string> constants,
                            std::vector<onnx::Attribute> attributes, const std::string& domain = "") {
  onnx::File file;
  file.opset = 17;
  file.inputs = {{"x", DataType::f32, {{0, "N"}, {2, ""}, {3, ""}}}};
  file.outputs = {{"y", DataType::f32, {}}};
  file.initializers = {weights("slope", {3}, {0.5f, 1, 2}),
                       weights("low", {}, {-1}),
                       weights("high", {}, {4}),
                       weights("two", {2}, {1, 2}),
                       weights("four", {2}, {4, 4}),
                       onnx::tensor("one", {1}),
                       onnx::tensor("last", {-1}),
                       onnx::tensor("pads", {0, 0, 1, 0, 0, 0}),
                       onnx::tensor("picked", {2, 0})};
  std::vector<std::string> inputs = {"x"};
  inputs.insert(inputs.end(), constants.begin(), constants.end());
  file.nodes = {{"n", op, domain, inputs, {"y"}, std::move(attributes)}};
  Session session = opened(onnx::imported(onnx::encode(file), "net.onnx"));
  const std::vector<float> x = {-3, -2, -1, 1, 2, 6};
  const HostTensor y = session.predict({{"x", HostTensor({1, 2, 3}, x)}});
  std::vector<float> values;
  for (const double value : as_doubles(y)) values.push_back(static_cast<float>(value));
  return values;
}

// reference/onnx_node_cases.py compares every op with onnx and onnxruntime.
TEST(OnnxImport, ReadsNodesOfEachKind) {
  using Values = std::vector<float>;
  const auto axis = [](std::int64_t of) { return attribute("axis", of); };
  const onnx::Attribute flat = attribute("keepdims", std::int64_t{0});
  EXPECT_EQ(value_of("Clip", {"low", "high"}, {}), (Values{-1, -1, -1, 1, 2, 4}));
  EXPECT_EQ(value_of("PRelu", {"slope"}, {}), (Values{-1.5f, -2, -2, 1, 2, 6}));
  EXPECT_EQ(value_of("HardSigmoid", {}, {attribute("alpha", 0.5f)}), (Values{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(value_of("Concat", {"x"}, {axis(2)}), (Values{-3, -2, -1, -3, -2, -1, 1, 2, 6, 1, 2, 6}));
  EXPECT_EQ(value_of("Gather", {"picked"}, {axis(2)}), (Values{-1, -3, 6, 1}));
  EXPECT_EQ(value_of("Slice", {"one", "last", "last"}, {}), (Values{-2, 2}));
  EXPECT_EQ(value_of("Unsqueeze", {"last"}, {}), (Values{-3, -2, -1, 1, 2, 6}));
  EXPECT_EQ(value_of("Pad", {"pads"}, {}), (Values{0, -3, -2, -1, 0, 1, 2, 6}));
  EXPECT_EQ(value_of("ReduceMax", {}, {attribute("axes", std::vector<std::int64_t>{-1}), flat}), (Values{-1, 6}));
  EXPECT_EQ(value_of("ArgMax", {}, {axis(-1), flat}), (Values{2, 2}));
  EXPECT_EQ(value_of("Transpose", {}, {attribute("perm", std::vector<std::int64_t>{0, 2, 1})}),
            (Values{-3, 1, -2, 2, -1, 6}));
  EXPECT_EQ(value_of("BatchNormalization", {"two", "two", "two", "four"}, {attribute("epsilon", 0.0f)}),
            (Values{-1, -0.5f, 0, 1, 2, 6}));
  EXPECT_EQ(value_of("Greater", {"low"}, {}), (Values{0, 0, 0, 1, 1, 1}));
  EXPECT_THROW(value_of("Gather", {"picked"}, {axis(1)}), Error);  // out of range
}

// The table of deployment.md has every op that imports read, and no other.
TEST(OnnxImport, TheGuideListsItsOps) {
  std::ifstream page(source_folder() + "/docs/guide/deployment.md");
  std::set<std::string> listed;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    in_table = line == "| kind | nodes |" || (in_table && line.starts_with("|"));
    if (!in_table || line.starts_with("|---") || line == "| kind | nodes |") continue;
    std::istringstream words(line.substr(line.find('|', 1) + 1));
    for (std::string word; words >> word;) {
      if (word.ends_with(',')) word.pop_back();
      if (word[0] >= 'A' && word[0] <= 'Z') listed.insert(word);
    }
  }
  const std::vector<std::string> ops = onnx::imported_ops();
  EXPECT_EQ(listed, std::set<std::string>(ops.begin(), ops.end()));
}

// A pipeline of scikit-learn: a scaler, a linear classifier with labels 3 and 7, and a map of probabilities.
TEST(OnnxImport, ReadsAClassifierOfScikitLearn) {
  const auto floats = [](const std::string& name, std::vector<float> values) {
    onnx::Attribute one;
    one.name = name, one.type = 6, one.floats = std::move(values);
    return one;
  };
  onnx::Attribute softmax;
  softmax.name = "post_transform", softmax.type = 3, softmax.s = "SOFTMAX";
  onnx::File file = small();
  file.initializers.clear();
  file.outputs = {{"label", DataType::i64, {{0, "N"}}}, {"probabilities", DataType::none, {}}};
  file.nodes = {{"", "Scaler", "ai.onnx.ml", {"x"}, {"s"}, {floats("offset", {1, 2}), floats("scale", {2, 1})}},
                {"",
                 "LinearClassifier",
                 "ai.onnx.ml",
                 {"s"},
                 {"label", "p"},
                 {floats("coefficients", {1, 0, 0, 1}), floats("intercepts", {0, 1}),
                  attribute("classlabels_ints", std::vector<std::int64_t>{3, 7}), softmax}},
                {"", "ZipMap", "ai.onnx.ml", {"p"}, {"probabilities"}, {}}};
  Session session = opened(onnx::imported(onnx::encode(file), "net.onnx"));
  const std::vector<float> x = {3, 2, 1, 2};  // logits (4, 1) and (0, 1)
  for (const auto& [name, value] : session.predict_all({{"x", HostTensor({2, 2}, x)}})) {
    const std::vector<double> values = as_doubles(value);
    if (name == "label") {
      EXPECT_EQ(values, (std::vector<double>{3, 7}));
    } else {
      EXPECT_NEAR(values[0], 1 / (1 + std::exp(-3.0)), 1e-6);
    }
  }
  file.outputs[0].type = DataType::string;  // labels that are words
  Session words = opened(onnx::imported(onnx::encode(file), "net.onnx"));
  EXPECT_EQ(words.predict_all({{"x", HostTensor({2, 2}, x)}}).size(), 1u);
}

// Fixed shapes that no batch fits: a row of the data is a call.
TEST(OnnxImport, AFixedShapeMayBeAWholeCall) {
  onnx::File file;
  file.opset = 17;
  file.inputs = {{"x", DataType::f32, {{2, ""}, {3, ""}}}, {"k", DataType::i64, {}}};
  file.outputs = {{"y", DataType::f32, {}}, {"z", DataType::i64, {}}};
  file.nodes = {{"", "ReduceSum", "", {"x"}, {"y"}, {attribute("keepdims", std::int64_t{0})}},
                {"", "Identity", "", {"k"}, {"z"}, {}}};
  Session session = opened(onnx::imported(onnx::encode(file), "net.onnx"));
  HostTensor k(DType::i32, Shape{2});
  k.elements<std::int32_t>()[1] = 7;
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 1};
  const auto results = session.predict_all({{"x", HostTensor({2, 2, 3}, x)}, {"k", k}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].second.elements<float>()[0], 21);
  EXPECT_EQ(results[0].second.elements<float>()[1], 1);
  EXPECT_EQ(results[1].second.elements<std::int32_t>()[1], 7);
}

TEST(OnnxImport, NamesADtypeThatItCannotRead) {
  onnx::File file = small();
  file.inputs[0].type = DataType::f64;
  EXPECT_TRUE(errors(onnx::encode(file)).at(0).message.ends_with("): the dtype f64 of the input 'x' is not supported"));
  file = small();
  file.initializers[1].type = static_cast<DataType>(16);
  EXPECT_EQ(errors(onnx::encode(file)).at(0).message,
            "node '/fc/Gemm' (Gemm): the dtype bf16 of its input 'fc.bias' is not supported");
}

// Weights in a file next to the ONNX file.
TEST(OnnxImport, ReadsExternalData) {
  const std::string folder = testing::TempDir() + "graphrun_onnx_external/";
  std::filesystem::create_directories(folder + "in");
  const std::vector<float> w = {9, 1, 2, 3, 4, 5, 6};
  std::ofstream(folder + "in/w.data", std::ios::binary).write(reinterpret_cast<const char*>(w.data()), 28);
  std::ofstream(testing::TempDir() + "outside.data", std::ios::binary)
      .write(reinterpret_cast<const char*>(w.data()), 28);
  const auto read = [&](const std::string& location, const std::string& offset, const std::string& length) {
    onnx::File file = small();
    file.initializers[0].raw.clear(), file.initializers[0].is_external = true;
    file.initializers[0].location = location, file.initializers[0].offset = offset,
    file.initializers[0].length = length;
    return onnx::imported(onnx::encode(file), folder + "net.onnx");
  };
  const ImportedModel imported = read("in/w.data", "4", "24");
  ASSERT_EQ(imported.parameters.size(), 2u);
  EXPECT_EQ(imported.parameters[0].second.elements<float>()[0], 1);
  EXPECT_NO_THROW(read("in/w.data", "", ""));
  const auto message = [&](const std::string& location, const std::string& offset, const std::string& length) {
    try {
      read(location, offset, length);
    } catch (const Error& error) {
      return error.diagnostics().at(0).message;
    }
    return std::string();
  };
  const std::string who = "the tensor 'fc.weight': its file '";
  EXPECT_EQ(message("in/w.data", "8", "24"), who + "in/w.data' ends early: 24 bytes are needed from byte 8 on");
  EXPECT_EQ(message("in/w.data", "0", "20"), who + "in/w.data' has 20 bytes for it; its shape needs 24");
  EXPECT_EQ(message("in/w.data", "-1", ""), who + "in/w.data' has no such offset or length");
  EXPECT_EQ(message("w.data", "", ""), who + "w.data' is missing");
  EXPECT_EQ(message("in", "", ""), who + "in' is missing");
  for (const std::string& path :
       std::vector<std::string>{"../outside.data", "in/../../outside.data", testing::TempDir() + "outside.data", ""})
    EXPECT_EQ(message(path, "", ""), who + path + "' is outside the folder of the ONNX file") << path;
  std::filesystem::remove_all(folder);
}

// A network with the nodes that read constants, so that mutants change shapes, axes and indices.
onnx::File varied() {
  onnx::File file;
  file.opset = 17;
  file.inputs = {{"x", DataType::f32, {{2, ""}, {2, ""}, {4, ""}}}};
  file.outputs = {{"y", DataType::f32, {}}, {"label", DataType::i64, {}}};
  file.initializers = {weights("w", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                       weights("b", {2}, {1, 2}),
                       weights("v", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                       onnx::tensor("starts", {0}),
                       onnx::tensor("ends", {2}),
                       onnx::tensor("axes", {2}),
                       onnx::tensor("pads", {0, 0, 1, 0, 0, 0}),
                       onnx::tensor("rest", {-1})};
  file.nodes = {{"", "Conv", "", {"x", "w", "b"}, {"c"}, {attribute("pads", std::vector<std::int64_t>{1, 0})}},
                {"", "MaxPool", "", {"c"}, {"m"}, {attribute("kernel_shape", std::vector<std::int64_t>{2})}},
                {"", "Pad", "", {"m", "pads"}, {"p"}, {}},
                {"", "Slice", "", {"p", "starts", "ends", "axes"}, {"s"}, {}},
                {"", "Shape", "", {"s"}, {"d"}, {}},
                {"", "Gather", "", {"d", "starts"}, {"g"}, {}},
                {"", "Concat", "", {"g", "rest"}, {"t"}, {attribute("axis", std::int64_t{0})}},
                {"", "Reshape", "", {"s", "t"}, {"r"}, {}},
                {"", "Gemm", "", {"r", "v"}, {"z"}, {}},
                {"", "BatchNormalization", "", {"z", "b", "b", "b", "b"}, {"n"}, {}},
                {"", "Clip", "", {"n"}, {"y"}, {attribute("min", -1.0f)}},
                {"", "ArgMax", "", {"y"}, {"label"}, {attribute("axis", std::int64_t{1})}}};
  return file;
}

// GRAPHRUN_FUZZ=100000 test_export --gtest_filter='*Mutants*' is the long run. A file that is read is a model, too.
TEST(OnnxImport, MutantsAreErrorsOrModels) {
  const std::string files[] = {onnx::encode(small()), onnx::encode(varied())};
  opened(onnx::imported(files[1], "net.onnx"));
  const Stream stream = Stream::named(1, "onnx mutants");
  int read = 0, rejected = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    std::string bytes = files[round % 2];
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
