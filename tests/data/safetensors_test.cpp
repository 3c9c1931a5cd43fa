// Safetensors: reads its own files and those of other writers, and rejects every inconsistent header.
#include "data/formats/safetensors.h"

#include <algorithm>

#include "archives.h"
#include "base/file.h"
#include "data/formats/npy.h"
#include "data_fixture.h"
#include "graphrun/show.h"
#include "graphrun/weights.h"
#include "session/weights/archive.h"
#include "support/variable.h"

namespace graphrun {
namespace {

using Tensors = std::vector<std::pair<std::string, HostTensor>>;

// A file with this header, and so many bytes of values.
std::string with_header(const std::string& header, std::size_t values) {
  return test::little(header.size(), 8) + header + std::string(values, '\0');
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

data::Safetensors opened(const std::string& bytes) {
  return {"w", std::make_shared<const std::string>(bytes)};
}

std::string rejection(const std::string& bytes) {
  try {
    opened(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "read";
}

HostTensor floats(const Shape& shape) {
  HostTensor tensor(DType::f32, shape);
  float next = 0.5F;
  for (float& x : tensor.elements<float>()) x = next += 1;
  return tensor;
}

HostTensor f64s(std::vector<double> values) {
  HostTensor tensor(DType::f64, Shape{static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, tensor.elements<double>().begin());
  return tensor;
}

std::uint64_t header_size(const std::string& bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  return size;
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  HostTensor ints(DType::i32, Shape{2, 2}), flags(DType::boolean, Shape{3}), none(DType::f32, Shape{0, 4});
  ints.elements<std::int32_t>()[3] = -7;
  flags.elements<std::uint8_t>()[1] = 1;
  HostTensor scalar(DType::f32, Shape{});
  scalar.elements<float>()[0] = 0.1F;
  const Tensors tensors = {{"W", floats(Shape{3, 2})},          {"ints", ints},    {"flags", flags}, {"none", none},
                           {"a b:\"mean\"\n", f64s({0.1, -2})}, {"scalar", scalar}};
  const data::Texts texts = {{"graphrun.model", "{\n  \"ü\": \"\\\"\"\n}\n"}, {"empty", ""}};
  const std::string bytes = data::safetensors_bytes(tensors, texts);
  EXPECT_EQ(bytes, data::safetensors_bytes(tensors, texts));
  EXPECT_TRUE(data::is_safetensors(bytes));
  EXPECT_EQ((8 + header_size(bytes)) % 64, 0u);
  const data::Safetensors file = opened(bytes);
  // The widest first, then as they were given.
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a b:\"mean\"\n", "W", "ints", "none", "scalar", "flags"}));
  for (const auto& [key, text] : texts) EXPECT_EQ(file.text(key), text);
  EXPECT_EQ(file.text("other"), "");
  EXPECT_EQ(std::get<std::vector<double>>(file.read("a b:\"mean\"\n").values), (std::vector<double>{0.1, -2}));
  EXPECT_TRUE(
      std::ranges::equal(std::get<std::vector<float>>(file.read("W").values), tensors[0].second.elements<float>()));
  EXPECT_EQ(std::get<std::vector<std::int32_t>>(file.read("ints").values), (std::vector<std::int32_t>{0, 0, 0, -7}));
  EXPECT_EQ(std::get<std::vector<std::uint8_t>>(file.read("flags").values), (std::vector<std::uint8_t>{0, 1, 0}));
  EXPECT_EQ(std::get<std::vector<float>>(file.read("scalar").values), std::vector<float>{0.1F});
  EXPECT_EQ(file.info("scalar").shape, Shape{});
  EXPECT_EQ(file.info("none").shape, (Shape{0, 4}));
  EXPECT_EQ(file.info("W").dtype, "f32");
  EXPECT_EQ(file.info("flags").dtype, "bool");
}

TEST(Safetensors, NothingAtAllIsAFile) {
  EXPECT_TRUE(opened(data::safetensors_bytes({}, {})).names().empty());
  EXPECT_TRUE(opened(with_header("{}", 0)).names().empty());
}

// Headers of any length, values at any byte, keys in any order, what is not asked for of any dtype.
TEST(Safetensors, FilesOfOthersAreRead) {
  for (std::size_t spaces = 0; spaces < 9; ++spaces) {
    const std::string header = "{" + entry("b", "U8", "[1]", "[4,5]") +
                               ",\"W\":{\"data_offsets\":[0,4],\"more\":null,\"shape\":[1, 1],\"dtype\":\"F32\"}}" +
                               std::string(spaces, ' ');
    std::string bytes = with_header(header, 5);
    bytes.replace(bytes.size() - 5, 5, std::string("\0\0\x80\x3f\x07", 5));
    const data::Safetensors file = opened(bytes);
    EXPECT_EQ(std::get<std::vector<float>>(file.read("W").values), std::vector<float>{1});
    EXPECT_EQ(std::get<std::vector<std::uint8_t>>(file.read("b").values), std::vector<std::uint8_t>{7});
  }
  const data::Safetensors file = opened(with_header(
      "{" + entry("h", "F8_E4M3", "[4]", "[0,4]") + "," + entry("n", "F4", "[3]", "[4,6]") + "," +
          entry("deep", "F32", "[1,1,1,1,1,1,1,1,1]", "[6,10]") + "," + entry("W", "F32", "[1]", "[10,14]") + "}",
      14));
  EXPECT_NO_THROW(file.read("W"));
  EXPECT_EQ(file.info("h").dtype, "F8_E4M3");
  EXPECT_EQ(file.info("n").dtype, "F4");
  const auto message = [&](const char* name) -> std::string {
    try {
      file.read(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(message("h"), "'w': 'h' is F8_E4M3, which is not read\n    hint: save it as float32");
  EXPECT_EQ(message("n"), "'w': 'n' is F4, which is not read\n    hint: save it as float32");
  EXPECT_EQ(message("deep"), "'w': 'deep' has 9 axes, and 8 are the most");
  EXPECT_EQ(message("w"), "'w' has no tensor 'w'\n    hint: did you mean 'W'?");
}

TEST(Safetensors, FilesThatLie) {
  const std::string cut = "\n    hint: the file may have been cut short when it was copied";
  EXPECT_EQ(rejection(""), "'w': no safetensors file: it has 0 bytes" + cut);
  EXPECT_EQ(rejection("1234567"), "'w': no safetensors file: it has 7 bytes" + cut);
  EXPECT_EQ(rejection(test::little(3, 8) + "{}"), "'w': the header has 3 bytes, but only 2 follow" + cut);
  EXPECT_EQ(rejection(test::little(100'000'001, 8) + "{}"),
            "'w': no safetensors file: its header would have 100000001 bytes, and 100000000 are the most");
  EXPECT_EQ(rejection(std::string(8, '\xff') + "{}"),
            "'w': no safetensors file: its header would have 18446744073709551615 bytes, and 100000000 are the most");
  EXPECT_EQ(rejection(with_header("", 0)), "'w': the header is not a JSON object: it must begin with '{'");
  EXPECT_EQ(rejection(with_header("[]", 0)), "'w': the header is not a JSON object: it must begin with '{'");
  EXPECT_EQ(rejection(with_header(" {}", 0)), "'w': the header is not a JSON object: it must begin with '{'");
  EXPECT_NE(rejection(with_header("{\"a\":", 0)).find("'w': the header, line 1, column "), std::string::npos);
  EXPECT_NE(rejection(with_header("{} x", 0)).find("'w': the header, line 1, column 4: "), std::string::npos);
  const std::string w = entry("W", "F32", "[1]", "[0,4]");
  EXPECT_NE(rejection(with_header("{" + w + "," + w + "}", 4)).find("duplicate key \"W\""), std::string::npos);
  EXPECT_EQ(rejection(with_header("{\"__metadata__\":[]}", 0)), "'w': '__metadata__' must be an object of strings");
  EXPECT_EQ(rejection(with_header("{\"__metadata__\":{\"a\":1}}", 0)),
            "'w': 'a' of '__metadata__' must be a string, it is a number");
  EXPECT_EQ(rejection(with_header("{\"W\":3}", 0)), "'w': 'W' has no \"dtype\" that is a string");
  EXPECT_EQ(rejection(with_header("{\"W\":{\"dtype\":4}}", 0)), "'w': 'W' has no \"dtype\" that is a string");
}

TEST(Safetensors, TensorsThatLie) {
  const auto says = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                       std::size_t values = 8) {
    return rejection(with_header("{" + entry("W", dtype, shape, offsets) + "}", values));
  };
  const std::string cut = "\n    hint: the file may have been cut short when it was copied";
  EXPECT_EQ(says("F32", "[2]", "[0,8]"), "read");
  for (const char* shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "[null]", "{}", "[9223372036854775808]", "[1e3]"})
    EXPECT_EQ(says("F32", shape, "[0,8]"), "'w': 'W' has no \"shape\" of whole numbers from 0 on") << shape;
  for (const char* offsets : {"8", "[8]", "[0,8,8]", "[8,0]", "[-1,8]", "[0,8.0]", "[0,18446744073709551616]"})
    EXPECT_EQ(says("F32", "[2]", offsets), "'w': 'W' has no \"data_offsets\" [begin, end] of whole numbers from 0 on")
        << offsets;
  EXPECT_EQ(says("F32", "[2]", "[0,8]", 7), "'w': the values of 'W' end at byte 8 of 7 that follow the header" + cut);
  EXPECT_EQ(says("F32", "[2]", "[0,9223372036854775807]"),
            "'w': the values of 'W' end at byte 9223372036854775807 of 8 that follow the header" + cut);
  EXPECT_EQ(says("F32", "[3]", "[0,8]"), "'w': 'W' is (3) of F32, but its values are 8 bytes");
  EXPECT_EQ(says("F64", "[2]", "[0,8]"), "'w': 'W' is (2) of F64, but its values are 8 bytes");
  EXPECT_EQ(says("F32", "[]", "[0,8]"), "'w': 'W' is () of F32, but its values are 8 bytes");
  EXPECT_EQ(says("BF16", "[2]", "[0,8]"), "'w': 'W' is (2) of BF16, but its values are 8 bytes");
  // Products that are 2 again when they overflow.
  EXPECT_NE(says("F32", "[4611686018427387904,4,2]", "[0,8]"), "read");
  EXPECT_NE(says("F32", "[4294967297,4294967298]", "[0,8]"), "read");
  EXPECT_NE(says("F32", "[4611686018427387906]", "[0,8]"), "read");
  // An extent of 0 would hide the overflow of the others.
  EXPECT_NE(says("F32", "[0,4611686018427387904,4611686018427387904]", "[0,0]", 0), "read");
}

// Every byte is one tensor's and no other's.
TEST(Safetensors, ValuesThatOverlapOrLeaveBytesOver) {
  const auto says = [](const std::string& a, const std::string& b, std::size_t values) {
    return rejection(with_header("{" + entry("a", "F32", "[2]", a) + "," + entry("b", "U8", "[4]", b) + "}", values));
  };
  EXPECT_EQ(says("[0,8]", "[8,12]", 12), "read");
  EXPECT_EQ(says("[4,12]", "[0,4]", 12), "read");
  EXPECT_EQ(says("[0,8]", "[7,11]", 11), "'w': the values of 'a' and 'b' overlap");
  EXPECT_EQ(says("[0,8]", "[2,6]", 8), "'w': the values of 'a' and 'b' overlap");
  EXPECT_EQ(says("[0,8]", "[9,13]", 13), "'w': 1 bytes before the values of 'b' belong to no tensor");
  EXPECT_EQ(says("[2,10]", "[10,14]", 14), "'w': 2 bytes before the values of 'a' belong to no tensor");
  EXPECT_EQ(says("[0,8]", "[8,12]", 15), "'w': 3 bytes at the end belong to no tensor");
  EXPECT_EQ(rejection(with_header("{}", 1)), "'w': 1 bytes at the end belong to no tensor");
}

TEST(Safetensors, NamesThatAHeaderCannotHave) {
  EXPECT_THROW(data::safetensors_bytes(Tensors{{"__metadata__", floats(Shape{1})}}, {}), Error);
  EXPECT_THROW(data::safetensors_bytes(Tensors{{"gr\xf6\xdf"
                                                "e:mean",
                                                f64s({1})}},
                                       {}),
               Error);
  EXPECT_NO_THROW(data::safetensors_bytes(Tensors{{"größe:mean", f64s({1})}}, {}));
}

TEST(Safetensors, TheHeaderAndValuesCountTowardsTheLimit) {
  const test::Variable limit("GRAPHRUN_MAX_INPUT", "2M");
  const std::string large = data::safetensors_bytes(Tensors{{"W", floats(Shape{1024, 1024})}}, {});
  EXPECT_THROW(opened(large).read("W"), Error);
  std::string header = "{\"W\":{\"dtype\":\"F32\",\"shape\":[1";
  for (int i = 0; i < 200000; ++i) header += ",1";
  try {
    opened(with_header(header + "],\"data_offsets\":[0,4]}}", 4));
    ADD_FAILURE() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "input.limit");
  }
}

// ---- weights of models

constexpr const char* kGaps = R"js({"format": 1,
  "data": {"source": {"csv": "a.csv", "missing": "mean", "x": ["a", "b", "s"], "c": "b - mean(b)", "y": "y"},
           "split": [0.6, 0.2, 0.2],
           "transform": {"s": ["one_hot"], "x": ["standardize"], "y": ["standardize"]}},
  "inputs": {"x": ["batch", 4], "c": ["batch", 1], "y": ["batch", 1]},
  "parameters": {"unused": {"shape": [3], "init": {"normal": 1}}},
  "graph": ["xc = concat(x, c, axis=1)",
            {"name": "h", "op": "dense", "inputs": ["xc"], "units": 4, "activation": "tanh"},
            {"name": "z", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mse(z, y)"],
  "outputs": {"z": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"adam": {"lr": 0.1}}, "epochs": 30}})js";

class SafetensorsWeights : public DataTest {
 protected:
  SafetensorsWeights() {
    write("model.json", kGaps);
    std::string rows = "a,b,s,y\n";
    for (int i = 0; i < 40; ++i)
      rows += (i % 9 == 3 ? "" : std::to_string(i)) + "," + std::to_string(i % 7) + "," + (i % 3 > 0 ? "süß" : "no") +
              "," + std::to_string(0.3 * i) + "\n";
    write("a.csv", rows);
    LoadOptions options;
    options.overrides = {{"train.seed", "5"}};
    session_.emplace(load_model(path("model.json"), options));
    session_->train();
    save_weights(*session_, path("w.safetensors"));
    save_weights(*session_, path("w.npz"));
  }
  data::Safetensors file() const {
    return {"w", std::make_shared<const std::string>(read_file(path("w.safetensors")))};
  }
  std::string rejected(const std::string& weights) const {
    try {
      LoadOptions options;
      options.weights = path(weights);
      load_model(path("model.json"), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "loaded";
  }
  std::optional<Session> session_;
};

TEST_F(SafetensorsWeights, BothFormatsHoldTheSame) {
  const data::Npz npz(path("w.npz"));
  const data::Safetensors safe = file();
  std::vector<std::string> names = safe.names(), others = npz.names();
  EXPECT_EQ(std::erase(others, "data:origin"), 1u);
  std::ranges::sort(names), std::ranges::sort(others);
  EXPECT_EQ(names, others);
  EXPECT_TRUE(std::ranges::count(names, "a:mean"));
  EXPECT_TRUE(std::ranges::count(names, "c:aggregate.0 of b - mean(b)"));
  for (const std::string& name : names) {
    EXPECT_TRUE(npz.read(name).values == safe.read(name).values) << name;
    EXPECT_EQ(npz.read(name).shape, safe.read(name).shape) << name;
  }
  EXPECT_EQ(safe.text("graphrun.origin"), session_->model().data.provenance);
  LoadOptions options;
  options.overrides = {{"train.seed", "5"}};
  EXPECT_EQ(safe.text("graphrun.model"), canonical_model(path("model.json"), options));
  EXPECT_EQ(safe.text("format"), "graphrun");
  EXPECT_EQ(read_file(path("w.safetensors")).find(folder()), std::string::npos);
}

TEST_F(SafetensorsWeights, TheModelInsideIsTheModel) {
  std::filesystem::remove(path("model.json"));
  EXPECT_TRUE(is_weights(path("w.safetensors")));
  const auto same = [&](Session& other) {
    EXPECT_EQ(other.weights_hash(), session_->weights_hash());
    EXPECT_EQ(other.evaluate("test").loss, session_->evaluate("test").loss);
    EXPECT_EQ(other.evaluate("test").values, session_->evaluate("test").values);
  };
  Session again(load_model(path("w.safetensors")));
  same(again);
  EXPECT_EQ(again.model().name, "model");
  EXPECT_EQ(again.model().train.seed, 5u);
  save_weights(again, path("again.safetensors"));
  EXPECT_EQ(read_file(path("again.safetensors")), read_file(path("w.safetensors")));
  // Format by content: the file name is irrelevant.
  std::filesystem::rename(path("w.safetensors"), path("w.json"));
  Session renamed(load_model(path("w.json")));
  same(renamed);
  EXPECT_EQ(canonical_model(path("w.json")), again.model().canonical());
  // Weights from another file override those inside.
  LoadOptions options;
  options.overrides = {{"train.epochs", "1"}};
  renamed.train();
  save_weights(renamed, path("more.npz"));
  options.weights = path("more.npz");
  Session more(load_model(path("w.json"), options));
  EXPECT_EQ(more.weights_hash(), renamed.weights_hash());
  EXPECT_NE(more.weights_hash(), session_->weights_hash());
}

TEST_F(SafetensorsWeights, APredictionIsTheSame) {
  write("new.csv", "s,b,a\nsüß,3,5\nno,1,\n");
  LoadOptions npz, none;
  npz.weights = path("w.npz");
  npz.predicts = none.predicts = 2;
  const auto predicted = [&](const std::string& model, const LoadOptions& options) {
    Session session(load_model(path(model), options));
    const auto rows = session.predict_all(load_inputs(path(model), path("new.csv"), options));
    const std::span<const float> z = rows.front().second.elements<float>();
    return std::vector<float>(z.begin(), z.end());
  };
  const std::vector<float> expected = predicted("model.json", npz);
  std::filesystem::remove(path("a.csv"));
  std::filesystem::remove(path("model.json"));
  EXPECT_EQ(predicted("w.safetensors", none), expected);
}

TEST_F(SafetensorsWeights, LoadWeightsTakesThem) {
  LoadOptions options;
  options.overrides = {{"train.seed", "5"}};
  Session fresh(load_model(path("model.json"), options));
  EXPECT_NE(fresh.weights_hash(), session_->weights_hash());
  load_weights(fresh, path("w.safetensors"));
  EXPECT_EQ(fresh.weights_hash(), session_->weights_hash());
}

TEST_F(SafetensorsWeights, FilesThatDoNotFit) {
  Tensors tensors;
  const data::Safetensors all = file();
  for (const std::string& name : all.names()) {
    const data::Array array = all.read(name);
    if (const auto* values = std::get_if<std::vector<float>>(&array.values))
      tensors.emplace_back(name, HostTensor(array.shape, *values));
  }
  write("bare.safetensors", data::safetensors_bytes(tensors, {}));
  try {
    load_model(path("bare.safetensors"));
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "weights.no_model");
  }
  EXPECT_NE(rejected("bare.safetensors").find("the weights come without the numbers by which 'x' was changed"),
            std::string::npos);
  tensors[0].second = HostTensor(DType::i32, tensors[0].second.shape());
  write("i32.safetensors", data::safetensors_bytes(tensors, {}));
  EXPECT_NE(rejected("i32.safetensors").find("must be f32, it is i32"), std::string::npos);
  EXPECT_NE(rejected("i32.safetensors").find("hint: convert it before it is saved: .astype(numpy.float32)"),
            std::string::npos);
  const std::string good = read_file(path("w.safetensors"));
  write("cut.safetensors", good.substr(0, good.size() - 1));
  EXPECT_NE(rejected("cut.safetensors").find("that follow the header\n    hint: the file may have been cut short"),
            std::string::npos);
  write("text.safetensors", "weights");
  EXPECT_NE(rejected("text.safetensors").find("no safetensors file: it has 7 bytes"), std::string::npos);
  EXPECT_TRUE(is_safetensors_name("a.b/W.SafeTensors"));
  EXPECT_FALSE(is_safetensors_name("safetensors"));
  // An archive is one whatever it is called.
  std::filesystem::rename(path("w.npz"), path("npz.safetensors"));
  LoadOptions options;
  options.weights = path("npz.safetensors");
  EXPECT_NO_THROW(load_model(path("model.json"), options));
}

// In Python: save_file(dict(numpy.load("w.npz")), "w.safetensors").
TEST_F(SafetensorsWeights, ArraysOfOurNpzAreTakenWithTheirOrigin) {
  const data::Npz npz(path("w.npz"));
  Tensors tensors;
  for (const std::string& name : npz.names()) {
    const data::Array array = npz.read(name);
    if (const auto* floats = std::get_if<std::vector<float>>(&array.values))
      tensors.emplace_back(name, HostTensor(array.shape, *floats));
    if (const auto* doubles = std::get_if<std::vector<double>>(&array.values))
      tensors.emplace_back(name, f64s(*doubles));
    if (const auto* ints = std::get_if<std::vector<std::int32_t>>(&array.values)) {
      tensors.emplace_back(name, HostTensor(DType::i32, array.shape));
      std::ranges::copy(*ints, tensors.back().second.elements<std::int32_t>().begin());
    }
  }
  write("c.safetensors", data::safetensors_bytes(tensors, {}));
  LoadOptions options;
  options.weights = path("c.safetensors");
  Session session(load_model(path("model.json"), options));
  EXPECT_EQ(session.weights_hash(), session_->weights_hash());
  EXPECT_EQ(session.model().data.provenance, session_->model().data.provenance);
}

// Inline values of many megabytes: the weights are there, the model is not.
TEST_F(SafetensorsWeights, AHugeModelStaysOutside) {
  std::string values = "[0.25";
  for (int i = 0; i < 1 << 19; ++i) values += ",0.123456789012345678901234567890";
  write("huge.json", R"js({"format": 1, "data": {"train": {"inline": {"x": )js" + values + R"js(]}}},
    "inputs": {"x": ["batch"]}, "parameters": {"w": {"shape": [1], "init": "zeros"}},
    "graph": ["loss = mean((x - w)^2)"], "outputs": ["loss"],
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})js");
  Session session(load_model(path("huge.json")));
  EXPECT_EQ(session.model().canonical(), "");
  save_weights(session, path("huge.safetensors"));
  EXPECT_LT(std::filesystem::file_size(path("huge.safetensors")), 1000u);
}

}  // namespace
}  // namespace graphrun
