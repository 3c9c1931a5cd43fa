// The limit on what is read (base/input_limit.h), on both sides, for every format and table; the bombs that once went
// off; what the data say against what numbers classes and table rows; weights that are not finite.
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <new>
#include <thread>

#include "archives.h"
#include "base/file.h"
#include "base/input_limit.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "data/csv/csv.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/splits/gather.h"
#include "data_fixture.h"
#include "graphrun/session.h"
#include "graphrun/weights.h"
#include "session/weights/weights_file.h"
#include "support/memory_cap.h"
#include "support/variable.h"

namespace graphrun {
namespace {

using test::Variable;

template <class F>
std::string code_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    return error.diagnostics().front().code;
  }
  return "";
}

template <class F>
std::string message_at_limit(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "no error";
}

class LimitsTest : public DataTest {
 protected:
  // f needs `bytes`: it succeeds under a limit of `bytes` and fails under a limit of one byte less.
  template <class F>
  static void needs(std::uint64_t bytes, F f) {
    {
      const Variable enough("GRAPHRUN_MAX_INPUT", std::to_string(bytes));
      EXPECT_EQ(message_at_limit(f), "no error") << bytes;
    }
    const Variable little("GRAPHRUN_MAX_INPUT", std::to_string(bytes - 1));
    EXPECT_EQ(code_of(f), "input.limit") << bytes;
  }
};

TEST_F(LimitsTest, TheVariable) {
  const auto limit = [](const std::string& text) {
    const Variable variable("GRAPHRUN_MAX_INPUT", text);
    return input_limit();
  };
  EXPECT_EQ(limit("1"), 1u);
  EXPECT_EQ(limit("3K"), 3072u);
  EXPECT_EQ(limit("5M"), 5u << 20);
  EXPECT_EQ(limit("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(limit("1T"), std::uint64_t{1} << 40);
  EXPECT_EQ(limit("18446744073709551615T"), std::numeric_limits<std::uint64_t>::max());
  for (const std::string bad : {"0", "-1", "x", "1.5G", "4GB", "4g", "18446744073709551616", " 1"})
    EXPECT_EQ(code_of([&] { limit(bad); }), "input.limit") << bad;
  const Variable none("GRAPHRUN_MAX_INPUT", "");
  EXPECT_GT(input_limit(), 1u << 20);
}

TEST_F(LimitsTest, Files) {
  write("a", std::string(5000, 'a'));
  needs(5000, [&] { read_file(path("a")); });
  // A pipe has no size. The reader may close it before the writer ends.
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto from_pipe = [&] {
    std::thread writer([&] { std::ofstream(path("pipe")) << std::string(60000, 'a'); });
    const std::string code = code_of([&] { EXPECT_EQ(read_file(path("pipe")).size(), 60000u); });
    writer.join();
    return code;
  };
  ::signal(SIGPIPE, SIG_IGN);
  {
    const Variable enough("GRAPHRUN_MAX_INPUT", "60000");
    EXPECT_EQ(from_pipe(), "");
  }
  const Variable little("GRAPHRUN_MAX_INPUT", "59999");
  EXPECT_EQ(from_pipe(), "input.limit");
  EXPECT_EQ(message_at_limit([] { read_file("/dev/zero"); }), "cannot read '/dev/zero': it is a device");
}

TEST_F(LimitsTest, AnIdxFile) {
  const std::string bytes = test::idx(0x0B, {1000}, std::string(2000, '\0'));
  write("plain", bytes);
  needs(4000, [&] { data::read_idx_file(path("plain")); });  // 16-bit integers become 32-bit ones
  write("zipped", test::gzip(test::idx(0x08, {1000}, std::string(1000, '\0'))));
  needs(1008, [&] { data::read_idx_file(path("zipped")); });
}

TEST_F(LimitsTest, NpyAndNpz) {
  const std::string array = test::npy("<i8", "(1000,)", std::string(8000, '\0'));
  needs(8000, [&] { data::parse_npy("a", array); });
  needs(4000, [&] { data::parse_npy("a", test::npy("|i1", "(1000,)", std::string(1000, '\0'))); });
  write("a.npz", test::zip("x.npy", array, 8));
  needs(array.size(), [&] { data::Npz(path("a.npz")).read("x"); });
  const Variable little("GRAPHRUN_MAX_INPUT", "1000");
  EXPECT_EQ(data::Npz(path("a.npz")).header("x").shape, Shape{1000});  // shapes are free
}

TEST_F(LimitsTest, ACsvOfCommas) {
  const auto csv = [](std::size_t columns, std::size_t rows) {
    std::string line;
    for (std::size_t c = 0; c + 1 < columns; ++c) line += ',';
    line += '\n';
    std::string text;
    for (std::size_t r = 0; r < rows; ++r) text += line;
    return [text] { data::Csv("a.csv", text, {false}); };
  };
  const auto code = [](const std::string& limit, const auto& f) {
    const Variable variable("GRAPHRUN_MAX_INPUT", limit);
    return code_of(f);
  };
  EXPECT_EQ(code("100K", csv(2, 20000)), "input.limit");  // fields
  EXPECT_EQ(code("2M", csv(2, 20000)), "");
  EXPECT_EQ(code("1M", csv(2000, 1)), "input.limit");  // columns
  EXPECT_EQ(code("2M", csv(2000, 1)), "");
  EXPECT_EQ(code("10K", csv(2000, 1)), "input.limit");  // one record
}

TEST_F(LimitsTest, Tables) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  needs(8 * 1000, [&] { read(R"({"train": {"grid": {"u": [0, 1, 1000]}, "x": "u"}})"); });
  needs(4 * 1000, [&] { read(R"({"train": {"random": {"rows": 1000, "columns": {"u": {"normal": 1}}}, "x": "u"}})"); });
  inputs = {{"x", Shape{1000}, DType::f32, false}};
  needs(4 * 1000 * 3,
        [&] { read(R"({"train": {"inline": {"x": [0, 1, 2]}}, "transform": {"x": [{"one_hot": 1000}]}})"); });
  inputs = {{"x", Shape{2}, DType::f32, false}};
  needs(8 * 2 * 1000, [&] { read(R"({"train": {"grid": {"u": [0, 1, 10], "v": [0, 1, 100]}, "x": ["u", "v"]}})"); });
}

// No table of two thousand million rows is drawn for its plan, nor put in order.
TEST_F(LimitsTest, APlanDrawsNothing) {
  const test::MemoryCap cap(std::uint64_t{256} << 20);
  DataOptions options;
  options.use = DataUse::sizes;
  const DataSet set = read(R"({"source": {"grid": {"u": [0, 1, 40000], "v": [0, 1, 50000]}, "x": ["u", "v"], "y": "v"},
      "split": [0.5, 0.25, 0.25]})",
                           options);
  EXPECT_EQ(set.splits[0].samples(), 1000000000);
  const std::string wide = R"({"train": {"csv": "no.csv", "y": "y", "rows": 4}, "transform": {"x": ["standardize"]}})";
  inputs = {{"x", Shape{200000000}, DType::f32, false}, {"y", Shape{1}, DType::f32, true}};
  EXPECT_EQ(read(wide, options).splits[0].samples(), 4);
}

TEST_F(LimitsTest, JsonTrees) {
  std::string zeros = "[";
  for (int i = 0; i < 10000; ++i) zeros += "0,";
  zeros += "0]";
  const auto code = [&](const std::string& limit) {
    const Variable variable("GRAPHRUN_MAX_INPUT", limit);
    return code_of([&] { json::parse("a.json", zeros); });
  };
  EXPECT_EQ(code("200K"), "input.limit");
  EXPECT_EQ(code("4M"), "");
  // Rejected before parsing: 20 MB of zeros would be a tree of 1.1 GB.
  for (int i = 0; i < 10; ++i) zeros = zeros.substr(0, zeros.size() - 1) + "," + zeros.substr(1);
  ASSERT_GT(zeros.size(), 20000000u);
  const test::MemoryCap cap(std::uint64_t{256} << 20);
  EXPECT_EQ(code("64M"), "input.limit");
}

TEST_F(LimitsTest, AMessageAboutManyLinesTakesNoMemory) {
  std::string lines = "[";
  for (int i = 0; i < 512; ++i) lines += std::string(std::size_t{1} << 16, '\n') + "0,";
  lines += "?";
  const test::MemoryCap cap(std::uint64_t{64} << 20);
  EXPECT_EQ(code_of([&] { json::parse("a.json", std::move(lines)); }), "json.syntax");
}

// Columns x0, x1, ... that become one array: of each only the one that is copied is there.
TEST_F(LimitsTest, ColumnsAreGatheredOneByOne) {
  const json::Document document = json::parse("a.json", "{}");
  json::Reader reader(document);
  data::Table table;
  std::weak_ptr<const data::Array> last;
  for (int i = 0; i < 4; ++i) {
    table.arrays.push_back({"x" + std::to_string(i), reader.root(), [&last, i] {
                              EXPECT_TRUE(last.expired());
                              const std::vector<double> values = {1.0 * i, 10.0 * i, 100.0 * i};
                              auto array = std::make_shared<const data::Array>(data::Array{Shape{3}, values});
                              last = array;
                              return array;
                            }});
  }
  data::gather(reader, reader.root(), table, {{"x", Shape{2, 2}}});
  const data::ArrayPtr x = table.find("x")->read();
  EXPECT_EQ(x->shape, (Shape{3, 2, 2}));
  EXPECT_EQ(std::get<std::vector<double>>(x->values),
            (std::vector<double>{0, 1, 2, 3, 0, 10, 20, 30, 0, 100, 200, 300}));
  needs(3 * 4 * 8, [&] { table.find("x")->read(); });
}

// ---- planned memory that is not allocated yet

TEST_F(LimitsTest, NoPlanAllocatesByWidth) {
  const std::string wide[] = {"sum(one_hot(k, classes=500000000), axis=1)",
                              "sum(x, axis=1)",
                              "max(x, axis=1)",
                              "sum(softmax(x), axis=1)",
                              "softmax_cross_entropy(x, k)",
                              "cast(argmax(x, axis=1), dtype=f32)",
                              "sum(slice(x, axis=1, start=1, stop=100000001), axis=1)",
                              "sum(concat(x, x, axis=1), axis=1)",
                              "sum(pad(x, axis=1, before=100000000), axis=1)",
                              "sum(reshape(x, shape=[-1, 20000, 10000]), axis=[1, 2])",
                              "sum(transpose(reshape(x, shape=[-1, 20000, 10000]), axes=[0, 2, 1]), axis=[1, 2])",
                              "sum(tanh(x * x + x) * p, axis=1)",
                              "x @ reshape(p, shape=[-1, 1])",
                              "sum(gather(T, k), axis=1)"};
  for (const std::string& expression : wide) {
    for (const char* executor : {"cpu", "ref"}) {
      const test::MemoryCap cap(std::uint64_t{128} << 20);
      GraphBuilder graph(4);
      graph.input("x", {kBatch, 200000000});
      graph.input("k", {kBatch}, DType::i32);
      graph.parameter("p", {200000000});
      graph.parameter("T", {300000000, 2});
      const Value loss = graph.expression("mean(" + expression + ")");
      Model model(std::move(graph));
      model.train.minimize = loss;
      model.data.splits = {{"train", {}, 8}};
      SessionOptions options;
      options.executor = executor;
      EXPECT_NO_THROW(plan_program(model, options)) << expression << " on " << executor;
    }
  }
}

TEST_F(LimitsTest, LossesAreNotReservedForEveryEpochThereMayBe) {
  GraphBuilder graph(1);
  graph.input("x", {kBatch});
  graph.parameter("p", {});
  const Value loss = graph.expression("mean(square(x - p))");
  Model model(std::move(graph));
  model.train.minimize = loss;
  model.train.epochs = std::int64_t{1} << 61;
  model.train.log_every = 1;
  model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {2})}}}};
  Session session(std::move(model));
  const test::MemoryCap cap(std::uint64_t{256} << 20);
  const TrainResult result = session.train([&](const Report&) { session.cancel(); });
  EXPECT_EQ(result.losses.size(), 2u);
}

// Lack of memory is not an error in the model file: with more memory the same file is valid.
TEST_F(LimitsTest, AFormulaWithoutMemoryIsNoMistakeOfTheUser) {
#ifdef GRAPHRUN_SANITIZED
  GTEST_SKIP() << "a sanitizer reserves more addresses than the limit leaves";
#endif
  write("model.json", R"model({
    "format": 1,
    "data": {"train": {"random": {"rows": 9000000, "columns": {"u": {"uniform": [0, 1]}}}, "x": "u + u * u", "y": "u"}},
    "inputs": {"x": ["batch"], "y": ["batch"]},
    "parameters": {"w": {"shape": [], "init": "zeros"}},
    "graph": ["p = x * w", "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 10}
  })model");
  const Variable limit("GRAPHRUN_MAX_INPUT", "4G");  // so that it is the memory that is lacking
  int told = 0;
  bool loaded = false;
  // Columns of 36 MB: more than what the heap keeps of memory that was freed.
  for (std::uint64_t megabytes = 24; megabytes <= 1024 && !loaded; megabytes += 24) {
    const test::MemoryCap cap(megabytes << 20);
    try {
      load_model(path("model.json"));
      loaded = true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device) << error.what();
      ++told;
    } catch (const std::bad_alloc&) {  // outside of the formula
    }
  }
  EXPECT_TRUE(loaded);
  EXPECT_GT(told, 0);
}

// ---- bombs

TEST_F(LimitsTest, BombsAreRejected) {
  const test::MemoryCap cap(std::uint64_t{512} << 20);
  const Variable limit("GRAPHRUN_MAX_INPUT", "64M");
  const std::string zeros(std::size_t{65} << 20, '\0');
  write("zeros.gz", test::gzip(test::idx(0x08, {65u << 20}, zeros)));
  EXPECT_EQ(code_of([&] { data::read_idx_file(path("zeros.gz")); }), "input.limit");
  const std::string array = test::npy("|u1", "(68157440,)", zeros);
  write("zeros.npz", test::zip("x.npy", array, 8));
  EXPECT_EQ(code_of([&] { data::Npz(path("zeros.npz")).read("x"); }), "input.limit");
  std::string lying = test::zip("x.npy", array.substr(0, 1000), 8);
  lying.replace(lying.find("PK\x01\x02") + 24, 4, test::little(array.size(), 4));  // the size once inflated
  write("lying.npz", lying);
  EXPECT_EQ(code_of([&] { data::Npz(path("lying.npz")).read("x"); }), "data.npz");
}

// ---- archives whose entries share bytes or names

std::string two_entries(const std::string& first, const std::string& second, std::uint64_t second_at) {
  const std::string array = test::npy("<f4", "(2,)", std::string(8, '\0'));
  const auto crc = static_cast<std::uint64_t>(
      crc32(0, reinterpret_cast<const Bytef*>(array.data()), static_cast<uInt>(array.size())));
  std::string zip, directory;
  std::uint64_t count = 0;
  for (const std::string& name : {first, second}) {
    const std::uint64_t at = count++ == 0 ? 0 : std::min<std::uint64_t>(second_at, zip.size());
    zip += "PK\x03\x04" + test::little(20, 2) + test::little(0, 8) + test::little(crc, 4) +
           test::little(array.size(), 4) + test::little(array.size(), 4) + test::little(name.size(), 2) +
           test::little(0, 2) + name + array;
    directory += "PK\x01\x02" + test::little(20, 2) + test::little(20, 2) + test::little(0, 8) + test::little(crc, 4) +
                 test::little(array.size(), 4) + test::little(array.size(), 4) + test::little(name.size(), 2) +
                 test::little(0, 12) + test::little(at, 4) + name;
  }
  const std::size_t begin = zip.size();
  return zip + directory + "PK\x05\x06" + test::little(0, 4) + test::little(2, 2) + test::little(2, 2) +
         test::little(directory.size(), 4) + test::little(begin, 4) + test::little(0, 2);
}

TEST_F(LimitsTest, EntriesOfAnArchiveShareNothing) {
  const auto says = [&](const std::string& bytes) {
    write("a.npz", bytes);
    const std::string text = message_at_limit([&] { data::Npz(path("a.npz")).read("a"); });
    return text.substr(text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2);
  };
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(says(two_entries("a.npy", "b.npy", all)), "no error");
  EXPECT_EQ(says(two_entries("a.npy", "b.npy", 0)), "'a.npy' and 'b.npy' overlap");
  EXPECT_EQ(says(two_entries("a.npy", "b.npy", 100)), "'a.npy' and 'b.npy' overlap");
  EXPECT_EQ(says(two_entries("a.npy", "a.npy", all)), "there are two arrays 'a'");
  EXPECT_EQ(says(two_entries("a.npy", "a", all)), "there are two arrays 'a'");
  // Bytes that the local header alone claims.
  std::string longer = two_entries("a.npy", "b.npy", all);
  longer[28] = 40;
  EXPECT_EQ(says(longer), "the array overlaps the next entry of the zip");
}

// ---- weights

class NotFiniteTest : public LimitsTest {
 protected:
  NotFiniteTest() {
    write("model.json",
          R"js({"format": 1, "data": {"train": {"inline": {"x": [[1, 2], [3, 5]], "y": [1, 2]}},
      "transform": {"x": ["standardize"]}}, "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
      "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mse(h, y)"], "outputs": {"h": "y"},
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})js");
  }
  std::string loaded(const std::string& array, std::size_t at, double value) const {
    std::vector<std::pair<std::string, HostTensor>> arrays = {{"h.W", HostTensor(DType::f32, Shape{2, 1})},
                                                              {"h.b", HostTensor(DType::f32, Shape{1})},
                                                              {"x:shift", HostTensor(DType::f64, Shape{2})},
                                                              {"x:scale", HostTensor(DType::f64, Shape{2})}};
    for (double& scale : arrays[3].second.elements<double>()) scale = 1;
    for (auto& [name, tensor] : arrays) {
      if (name != array) continue;
      if (tensor.dtype() == DType::f32)
        tensor.elements<float>()[at] = static_cast<float>(value);
      else
        tensor.elements<double>()[at] = value;
    }
    write("w.npz", data::npz_bytes(arrays));
    LoadOptions options;
    options.weights = path("w.npz");
    const std::string text = message_at_limit([&] { load_model(path("model.json"), options); });
    return text.substr(text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2);
  }
};

TEST_F(NotFiniteTest, WeightsAreFinite) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(loaded("", 0, 0), "no error");
  EXPECT_EQ(loaded("h.W", 1, nan), "'h.W' at [1, 0] is nan; a parameter is finite");
  EXPECT_EQ(loaded("h.b", 0, -infinity), "'h.b' at [0] is -inf; a parameter is finite");
  EXPECT_EQ(loaded("x:scale", 1, nan), "'x:scale' at [1] is nan; expected finite numbers");
  EXPECT_EQ(loaded("x:scale", 0, infinity), "'x:scale' at [0] is inf; expected finite numbers");
  EXPECT_EQ(loaded("x:shift", 1, nan), "'x:shift' at [1] is nan; expected finite numbers");
}

TEST_F(NotFiniteTest, LoadWeightsChangesNothingThen) {
  loaded("", 0, 0);
  LoadOptions options;
  options.weights = path("w.npz");
  Session session(load_model(path("model.json"), options));
  loaded("h.b", 0, std::nan(""));
  const std::string before = session.weights_hash();
  EXPECT_EQ(code_of([&] { load_weights(session, path("w.npz")); }), "weights.not_finite");
  EXPECT_EQ(session.weights_hash(), before);
}

TEST_F(NotFiniteTest, InitialArraysAreFinite) {
  loaded("h.W", 0, std::nan(""));
  LoadOptions options;
  options.overrides = {{"graph.0", R"({"name": "h", "op": "dense", "inputs": ["x"], "units": 1,
                                       "init": {"npz": "w.npz", "key": "h.W"}})"}};
  const std::string text = message_at_limit([&] { load_model(path("model.json"), options); });
  EXPECT_NE(text.find("'h.W' at [0, 0] is nan; a parameter is finite"), std::string::npos) << text;
}

}  // namespace
}  // namespace graphrun
