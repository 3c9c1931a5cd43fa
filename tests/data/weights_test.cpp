// Weights files: what is saved is what is loaded, and what does not fit is said.
#include "graphrun/weights.h"

#include <algorithm>
#include <bit>

#include "archives.h"
#include "base/file.h"
#include "data/formats/npy.h"
#include "data_fixture.h"

namespace graphrun {
namespace {

constexpr const char* kModel = R"js({"format": 1,
  "data": {"source": {"csv": "a.csv", "y": "y"}, "split": [0.6, 0.2, 0.2],
           "transform": {"x": [{"scale": 0.3}, "standardize"], "y": ["standardize"]}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "parameters": {"unused": {"shape": [3], "init": {"normal": 1}}},
  "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 4, "activation": "tanh"},
            {"name": "z", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mse(z, y)"],
  "outputs": {"z": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"adam": {"lr": 0.1}}, "epochs": 30}})js";

class WeightsTest : public DataTest {
 protected:
  WeightsTest() {
    write("model.json", kModel);
    write("a.csv", table(40, 1));
  }
  static std::string table(int rows, double factor) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i * factor) + "," + std::to_string(i % 7) + "," + std::to_string(0.3 * i + i % 7) + "\n";
    return text;
  }
  Model load(const std::string& weights = {}, std::vector<std::pair<std::string, std::string>> set = {}) const {
    LoadOptions options;
    options.weights = weights;
    options.overrides = std::move(set);
    return load_model(path("model.json"), options);
  }
  template <class F>
  std::string message(F f) const {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder())) != std::string::npos;) text.replace(at, folder().size(), "DIR");
      return text;
    }
    return "no mistake was found";
  }
  void write_arrays(const std::vector<std::pair<std::string, HostTensor>>& arrays) const {
    OutputFile file(path("w.npz"));
    file.write(data::npz_bytes(arrays));
    file.commit();
  }
};

HostTensor tensor(DType dtype, const Shape& shape) {
  return {dtype, shape};
}

TEST_F(WeightsTest, ASessionGoesOnWhereAnotherEnded) {
  Session first(load());
  first.train();
  save_weights(first, path("w.npz"));

  Session second(load());
  EXPECT_NE(second.weights_hash(), first.weights_hash());
  load_weights(second, path("w.npz"));
  EXPECT_EQ(second.weights_hash(), first.weights_hash());

  Session third(load(path("w.npz")));
  EXPECT_EQ(third.weights_hash(), first.weights_hash());
  for (const char* split : {"train", "validation", "test"}) {
    EXPECT_EQ(third.evaluate(split).loss, first.evaluate(split).loss);
    EXPECT_EQ(second.evaluate(split).values, first.evaluate(split).values);
  }
  save_weights(third, path("again.npz"));
  EXPECT_EQ(read_file(path("again.npz")), read_file(path("w.npz")));
}

// The numbers fitted in training, not those of the rows at hand.
TEST_F(WeightsTest, OtherDataAreChangedWithTheSavedNumbers) {
  Session first(load());
  first.train();
  save_weights(first, path("w.npz"));
  HostTensor x(DType::f32, Shape{1, 2});
  x.elements<float>()[0] = 17, x.elements<float>()[1] = 3;
  const float expected = first.predict({{"x", x}}).elements<float>()[0];

  write("a.csv", table(40, 5));
  Session other(load(path("w.npz")));
  EXPECT_EQ(other.predict({{"x", x}}).elements<float>()[0], expected);
  ASSERT_EQ(other.model().data.standardizations.size(), 2u);
  EXPECT_EQ(other.model().data.standardizations[0].shift, first.model().data.standardizations[0].shift);

  Session fitted_anew(load());
  EXPECT_NE(message([&] {
              load_weights(fitted_anew, path("w.npz"));
            }).find("DIR/w.npz: goes with values of 'x' that were changed with shift"),
            std::string::npos);
}

TEST_F(WeightsTest, APredictionNeedsNoData) {
  Session first(load());
  first.train();
  save_weights(first, path("w.npz"));
  HostTensor x(DType::f32, Shape{1, 2});
  x.elements<float>()[0] = 17, x.elements<float>()[1] = 3;
  std::filesystem::remove(path("a.csv"));
  LoadOptions options;
  options.weights = path("w.npz");
  options.data = DataUse::none;
  Session session(load_model(path("model.json"), options));
  EXPECT_EQ(session.predict({{"x", x}}).elements<float>()[0], first.predict({{"x", x}}).elements<float>()[0]);
}

TEST_F(WeightsTest, AllThatDoesNotFitIsSaidAtOnce) {
  write_arrays({{"h.W", tensor(DType::f32, Shape{3, 4})},
                {"h.b", tensor(DType::i32, Shape{4})},
                {"z.w", tensor(DType::f32, Shape{4, 1})},
                {"z.b", tensor(DType::f32, Shape{1})},
                {"unused", tensor(DType::f32, Shape{3})}});
  const std::string parameters =
      "DIR/w.npz: 'h.W' is (3, 4), the parameter is (2, 4)\n"
      "DIR/w.npz: 'h.b' must be f32, it is i32\n"
      "    hint: convert it before it is saved: .astype(numpy.float32), in PyTorch .float()\n"
      "DIR/w.npz: no array 'z.W'\n"
      "    hint: it has 'z.w', which the model has not\n"
      "DIR/w.npz: the model has no parameter 'z.w'\n"
      "    hint: did you mean 'z.W'?";
  EXPECT_EQ(message([&] {
              Session session(load());
              load_weights(session, path("w.npz"));
            }),
            parameters +
                "\nDIR/w.npz: no numbers for the input 'x', whose values are changed here\n"
                "DIR/w.npz: no numbers for the input 'y', whose values are changed here");
  const std::string text = message([&] { load(path("w.npz")); });
  EXPECT_NE(text.find(parameters), std::string::npos) << text;
  EXPECT_NE(text.find("/data/transform: the weights come without the numbers by which 'x' was changed"),
            std::string::npos)
      << text;
}

// A file of PyTorch: Linear layers (out, in) under the names of Sequential, in any float type.
TEST_F(WeightsTest, LinearLayersOfPyTorch) {
  write("net.json", R"js({"format": 1, "data": {"train": {"inline": {"x": [[1, 2]], "y": [0]}}},
    "inputs": {"x": ["batch", 2], "y": ["batch", 1]}, "parameters": {"_2.gain": {"shape": [1], "init": "ones"}},
    "graph": [{"name": "_0", "op": "dense", "inputs": ["x"], "units": 2}, "z = _2.gain * dense(_0, units=1, name=_1)",
              "loss = mse(z, y)"],
    "outputs": {"z": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})js");
  const auto bf16 = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
  std::string values = test::raw<double>({1, 2, 3, 4}) + test::raw<std::uint16_t>({0x3C00, 0x4000});  // 1, 2
  values += test::raw<std::uint16_t>({bf16(-1), bf16(10)}) + test::raw<float>({0.5F}) + test::raw<float>({3});
  const std::string header = R"({"0.weight":{"dtype":"F64","shape":[2,2],"data_offsets":[0,32]},)"
                             R"("0.bias":{"dtype":"F16","shape":[2],"data_offsets":[32,36]},)"
                             R"("1.weight":{"dtype":"BF16","shape":[1,2],"data_offsets":[36,40]},)"
                             R"("1.bias":{"dtype":"F32","shape":[1],"data_offsets":[40,44]},)"
                             R"("2.gain":{"dtype":"F32","shape":[1],"data_offsets":[44,48]}})";
  write("net.safetensors", test::little(header.size(), 8) + header + values);
  LoadOptions options;
  options.weights = path("net.safetensors");
  Session session(load_model(path("net.json"), options));
  HostTensor x(DType::f32, Shape{1, 2});
  x.elements<float>()[0] = 10, x.elements<float>()[1] = 100;
  // (1 * 10 + 2 * 100 + 1, 3 * 10 + 4 * 100 + 2) = (211, 432)
  EXPECT_EQ(session.predict({{"x", x}}).elements<float>()[0], 3 * (-211 + 4320 + 0.5F));
  const std::vector<std::string>& warnings = session.model().data.warnings;
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("rounding f64 to f32: 0.weight"), std::string::npos);
  EXPECT_NE(warnings[1].find("transposing 0.weight, 1.weight"), std::string::npos);
}

// Counters of batch norm in PyTorch are not parameters; a name close to that of a parameter is an error.
TEST_F(WeightsTest, CountersOfBatchNormAreIgnored) {
  const HostTensor z = tensor(DType::f32, Shape{4, 1});
  std::vector<std::pair<std::string, HostTensor>> arrays = {{"h.W", tensor(DType::f32, Shape{2, 4})},
                                                            {"h.b", tensor(DType::f32, Shape{4})},
                                                            {"z.W", z},
                                                            {"z.b", tensor(DType::f32, Shape{1})},
                                                            {"unused", tensor(DType::f32, Shape{3})},
                                                            {"bn.num_batches_tracked", tensor(DType::i32, Shape{})}};
  write_arrays(arrays);
  LoadOptions options;
  options.weights = path("w.npz");
  options.overrides = {{"data.transform", "null"}};
  const Model model = load_model(path("model.json"), options);
  ASSERT_FALSE(model.data.warnings.empty());
  EXPECT_NE(model.data.warnings.back().find("ignoring bn.num_batches_tracked"), std::string::npos);
  arrays.back().first = "z.w";
  arrays.emplace_back("running", z);
  write_arrays(arrays);
  const std::string text = message([&] { load_model(path("model.json"), options); });
  EXPECT_NE(text.find("no parameter 'z.w'\n    hint: did you mean 'z.W'?"), std::string::npos) << text;
  EXPECT_NE(text.find("no parameter 'running'\n    hint: save the file without it"), std::string::npos) << text;
}

TEST_F(WeightsTest, TransformsMustBeThoseOfTheTraining) {
  Session first(load());
  save_weights(first, path("w.npz"));
  const auto failure = [&](const char* key, const char* value) {
    return message([&] { load(path("w.npz"), {{key, value}}); });
  };
  EXPECT_NE(
      failure("data.transform.y", "[]").find("the weights go with values of 'y' that were changed; here they are"),
      std::string::npos);
  EXPECT_NE(failure("data.transform.y", R"([{"scale": 0.1}])").find("'y' that were changed in another way"),
            std::string::npos);
}

TEST_F(WeightsTest, FilesThatAreNone) {
  EXPECT_NE(message([&] { load(path("no.npz")); }).find("cannot read 'DIR/no.npz'"), std::string::npos);
  write("w.npz", "PK?");
  EXPECT_NE(message([&] { load(path("w.npz")); }).find("'DIR/w.npz': not an NPZ file"), std::string::npos);
  HostTensor zero = tensor(DType::f64, Shape{2});
  write_arrays({{"x:shift", zero}, {"x:scale", zero}});
  EXPECT_NE(message([&] { load(path("w.npz")); }).find("no scale may be 0"), std::string::npos);
  write_arrays({{"x:shift", tensor(DType::f32, Shape{2})}});
  EXPECT_NE(message([&] { load(path("w.npz")); }).find("'x:shift' must be a vector of f64"), std::string::npos);
  Session session(load());
  EXPECT_NE(message([&] { save_weights(session, path("no/such/folder/w.npz")); }).find("cannot write"),
            std::string::npos);
}

// {"npz": "file.npz", "key": "W"} as an initializer.
TEST_F(WeightsTest, ParametersStartFromAnArray) {
  HostTensor wide = tensor(DType::f32, Shape{2, 4}), three = tensor(DType::f32, Shape{3});
  for (std::size_t i = 0; i < 8; ++i) wide.elements<float>()[i] = static_cast<float>(i) / 8;
  three.elements<float>()[2] = 5;
  write_arrays({{"W", wide}, {"three", three}, {"f64", tensor(DType::f64, Shape{3})}});
  const auto with = [](const std::string& parameter, const std::string& layer) {
    return std::vector<std::pair<std::string, std::string>>{{"parameters.unused.init", parameter},
                                                            {"graph.h.init", layer}};
  };
  const std::string good = R"({"npz": "w.npz", "key": "three"})", layer = R"({"npz": "w.npz", "key": "W"})";
  Session session(load("", with(good, layer)));
  EXPECT_TRUE(std::ranges::equal(session.read("h.W").elements<float>(), wide.elements<float>()));

  const auto failure = [&](const std::string& init) { return message([&] { load("", with(init, layer)); }); };
  EXPECT_NE(failure(R"({"npz": "w.npz", "key": "W"})").find("the given values are f32(2, 4), the parameter is f32(3)"),
            std::string::npos);
  EXPECT_NE(failure(R"({"npz": "w.npz", "key": "thre"})").find("'DIR/w.npz' has no array 'thre'"), std::string::npos);
  EXPECT_NE(failure(R"({"npz": "w.npz", "key": "thre"})").find("did you mean 'three'?"), std::string::npos);
  EXPECT_NE(failure(R"({"npz": "w.npz", "key": "f64"})").find("'DIR/w.npz': the values of 'f64' are not f32"),
            std::string::npos);
  EXPECT_NE(failure(R"({"npz": "v.npz", "key": "three"})").find("'v.npz' not found; tried DIR/v.npz"),
            std::string::npos);
  EXPECT_NE(failure(R"({"npz": "w.npz"})").find("missing key 'key'"), std::string::npos);
  EXPECT_NE(failure(R"({"npz": "w.npz", "ky": "three", "key": "three"})").find("unknown key 'ky'"), std::string::npos);
  EXPECT_NE(failure(R"({"npz": 3, "key": "three"})").find("must be a string"), std::string::npos);

  // plan opens no such file, and weights replace its values.
  LoadOptions plan;
  plan.data = DataUse::sizes;
  plan.overrides = with(R"({"npz": "v.npz", "key": "three"})", layer);
  EXPECT_NO_THROW(load_model(path("model.json"), plan));
  save_weights(session, path("all.npz"));
  EXPECT_NO_THROW(load(path("all.npz"), plan.overrides));
}

TEST_F(WeightsTest, EveryDtypeAndShapeIsReadAsItWasWritten) {
  HostTensor ints(DType::i32, Shape{2, 3}), flags(DType::boolean, Shape{2}), scalar(DType::f64, Shape{});
  for (std::size_t i = 0; i < 6; ++i) ints.elements<std::int32_t>()[i] = static_cast<std::int32_t>(i) - 3;
  flags.elements<std::uint8_t>()[1] = 1;
  scalar.elements<double>()[0] = 0.1;
  write_arrays({{"ints", ints}, {"flags", flags}, {"scalar", scalar}, {"none", tensor(DType::f32, Shape{0, 4})}});
  // The header that NumPy itself writes.
  EXPECT_EQ(data::npy_bytes(ints).substr(0, 128), std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                                      "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }" +
                                                      std::string(58, ' ') + "\n");
  EXPECT_NE(data::npy_bytes(flags).find("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }"),
            std::string::npos);
  EXPECT_NE(data::npy_bytes(scalar).find("{'descr': '<f8', 'fortran_order': False, 'shape': (), }"), std::string::npos);
  const data::Npz npz(path("w.npz"));
  EXPECT_EQ(npz.names(), (std::vector<std::string>{"ints", "flags", "scalar", "none"}));
  const data::Array array = npz.read("ints");
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(std::get<std::vector<std::int32_t>>(array.values), (std::vector<std::int32_t>{-3, -2, -1, 0, 1, 2}));
  EXPECT_EQ(std::get<std::vector<std::uint8_t>>(npz.read("flags").values), (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(npz.read("scalar").shape, Shape{});
  EXPECT_EQ(std::get<std::vector<double>>(npz.read("scalar").values), (std::vector<double>{0.1}));
  EXPECT_EQ(npz.read("none").shape, (Shape{0, 4}));
}

}  // namespace
}  // namespace graphrun
