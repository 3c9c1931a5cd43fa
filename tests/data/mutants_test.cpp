// Damaged data files, thousands of them, through every reader: each gives an Error or other numbers, without a crash.
// The short run is part of the tests. The long run, best under sanitizers:
// GRAPHRUN_FUZZ=100000 test_data --gtest_filter='Mutants*'. A memory limit catches readers that trust false headers.
// Fixed bugs have separate tests (limits_test.cpp, formats_test.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "archives.h"
#include "base/philox.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data_fixture.h"
#include "session/weights/weights_file.h"
#include "support/memory_cap.h"
#include "support/rounds.h"
#include "support/variable.h"

namespace graphrun {
namespace {

// One of the ways in which a file goes wrong, by the words of a stream.
class ModelMutator {
 public:
  explicit ModelMutator(std::uint64_t seed) : stream_(Stream::named(seed, "mutants")) {}

  std::string mutant(std::string bytes) {
    for (std::uint64_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) change(bytes);
    return bytes;
  }

 private:
  std::uint64_t word() {
    const std::uint64_t i = next_++;
    return stream_.block(0, i / 4)[i % 4];
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(word() % n); }

  void change(std::string& bytes) {
    static const std::vector<std::string> pieces = {"\xff\xff\xff\xff",
                                                    std::string(4, '\0'),
                                                    "\x7f\xff\xff\xff",
                                                    "\xff\xff\xff\x7f",
                                                    "9223372036854775807",
                                                    "-1",
                                                    "1e999",
                                                    "nan",
                                                    "\"",
                                                    ",,",
                                                    "\r\n",
                                                    "[[",
                                                    "{\"x\":",
                                                    "999999999",
                                                    "(0, 4611686018427387904)"};
    const std::size_t at = below(bytes.size());
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(word());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(8));
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32)));
        break;
      case 5:
        bytes.insert(at, pieces[below(pieces.size())]);
        break;
      default: {
        const std::string& piece = pieces[below(pieces.size())];
        bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
      }
    }
  }

  Stream stream_;
  std::uint64_t next_ = 0;
};

class MutantsTest : public DataTest {
 protected:
  static int count() { return test::rounds(500); }

  // Calls read(mutant) for each mutant. Returns the number of rejected mutants.
  template <class F>
  int run(const std::string& good, F read) {
    EXPECT_NO_THROW(read(good));
    ModelMutator mutator(good.size());
    int rejected = 0;
    for (int i = 0; i < count(); ++i) {
      const std::string bad = mutator.mutant(good);
      try {
        read(bad);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        ++rejected;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "mutant " << i << ": " << error.what();
      }
    }
    EXPECT_GT(rejected, count() / 10);
    return rejected;
  }

  // The same through a data section that names the file `a`.
  void run_file(const std::string& good, const std::string& block) { run_packed(good, block, as_it_is); }

  // The same of what is packed afterwards, so that checksums do not catch it.
  void run_packed(const std::string& good, const std::string& block, std::string (*pack)(const std::string&)) {
    run(good, [&](const std::string& bytes) {
      write("a", pack(bytes));
      return this->read(block).splits.size();
    });
  }
  static std::string as_it_is(const std::string& bytes) { return bytes; }

  const test::Variable limit_{"GRAPHRUN_MAX_INPUT", "64M"};
  const test::MemoryCap cap_{std::uint64_t{2} << 30};
};

HostTensor counted(DType dtype, const Shape& shape) {
  HostTensor tensor(dtype, shape);
  if (dtype == DType::f32) {
    for (std::size_t i = 0; i < tensor.elements<float>().size(); ++i)
      tensor.elements<float>()[i] = static_cast<float>(i);
  } else {
    for (std::size_t i = 0; i < tensor.elements<double>().size(); ++i)
      tensor.elements<double>()[i] = static_cast<double>(i) + 1;
  }
  return tensor;
}

TEST_F(MutantsTest, Csv) {
  std::string text = "a,\"b \"\"c\"\"\",y\r\n";
  for (int i = 0; i < 12; ++i) text += std::to_string(i) + ", " + std::to_string(i * i % 7) + ".5,\"-1e-1\"\r\n";
  run_file(text,
           R"({"source": {"csv": "a", "y": "y"}, "split": [0.5, 0.25, 0.25], "transform": {"x": ["standardize"]}})");
  run_file(text, R"js({"train": {"csv": "a", "missing": "mean", "x": ["a", "a"], "y": "y * exp(-a)"}})js");
  run_file(
      text.substr(text.find('\n') + 1),
      R"({"train": {"csv": "a", "missing": "drop", "header": false, "x": ["0", "1"], "y": "2", "range": [1, 5]}})");
}

TEST_F(MutantsTest, TablesOfOtherPrograms) {
  std::string blanks = "d  a \"y z\"\n", sparse = "# saved\n";
  for (int i = 1; i < 13; ++i) {
    blanks += fmt::format(" {}/12/2024   ($1'00{}.5) \t {}\n", i, i % 10, i * i % 7);
    sparse += fmt::format("{} 1:0.5 {}:{} # {}\n", i % 2, 2 + i % 2, i, i);
  }
  run_file(blanks, R"js({"source": {"csv": "a", "delimiter": " ", "currency": "$", "thousands": "'", "x": ["a", "a"],
                         "dates": "mm/dd/yyyy", "y": "y z"}, "split": [0.5, 0.25, 0.25], "split_by": "d"})js");
  run_file(sparse, R"({"train": {"csv": "a", "libsvm": 0, "x": ["c1", "c2"], "y": "c0"}})");
}

TEST_F(MutantsTest, Npy) {
  inputs = {{"x", Shape{2}, DType::f32, false}};
  const std::string good = data::npy_bytes(counted(DType::f32, Shape{6, 2}));
  run_file(good, R"({"source": {"npy": {"x": "a"}}, "split": [0.5, 0.25, 0.25]})");
  run_file(good, R"({"train": {"npy": {"m": "a"}, "x": "m * 2", "missing": {"m": "drop"}}})");
  std::string fortran = good;
  fortran.replace(good.find("False"), 5, "True ");
  run_file(fortran, R"({"train": {"npy": {"x": "a"}, "missing": "mean"}})");
}

TEST_F(MutantsTest, Npz) {
  const std::vector<std::pair<std::string, HostTensor>> arrays = {{"x", counted(DType::f64, Shape{4, 2})},
                                                                  {"y", counted(DType::f32, Shape{4})}};
  run_file(data::npz_bytes(arrays), R"({"train": {"npz": "a"}, "transform": {"x": ["standardize"]}})");
  inputs = {{"x", Shape{2}, DType::f32, false}};
  const std::string array = data::npy_bytes(counted(DType::f64, Shape{4, 2})), block = R"({"train": {"npz": "a"}})";
  run_file(test::zip("x.npy", array, 8), block);
  run_packed(array, block, [](const std::string& bytes) { return test::zip("x.npy", bytes, 8); });
}

TEST_F(MutantsTest, Idx) {
  inputs = {{"x", Shape{6}, DType::f32, false}};
  std::string good{0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3};
  for (char c = 0; c < 24; ++c) good += c;
  const std::string block =
      R"({"source": {"idx": {"x": "a"}}, "split": [0.5, 0.25, 0.25], "transform": {"x": ["flatten"]}})";
  run_file(good, block);
  run_file(test::gzip(good), block);
  run_packed(good, block, test::gzip);
}

// In a palette, interlaced; damage of the chunks and, with valid checksums, of the compressed rows.
TEST_F(MutantsTest, Png) {
  if (!reads_png()) GTEST_SKIP() << "libpng16.so.16 does not load, or png.h was not found";
  inputs = {{"image", Shape{5, 6, 3}, DType::f32, false}};
  std::string samples;
  for (char c = 0; c < 30; ++c) samples += static_cast<char>(c % 4);
  static const std::string palette = test::png_chunk("PLTE", "abcdefghijkl");
  const std::string rows = test::png_rows(6, samples, 1, true);
  const std::string good = test::png(6, 5, 8, 3, rows, palette, true), block = R"({"train": {"images": "photos"}})";
  const auto read_as = [&](const std::string& bytes) {
    write("photos/a/1.png", bytes);
    return this->read(block).splits.size();
  };
  run(good, read_as);
  run(rows, [&](const std::string& bytes) { return read_as(test::png(6, 5, 8, 3, bytes, palette, true)); });
}

TEST_F(MutantsTest, FlatJson) {
  run_file(
      R"({"m": 3, "n": 2, "m_test": 1, "x": [1, 2, 3, 4, 5, 6], "y": [1, 2.5, 3], "x_test": [7, 8], "y_test": [4]})",
      R"({"source": {"json": "a"}, "transform": {"y": ["standardize"]}})");
}

TEST_F(MutantsTest, DataSections) {
  const std::string sections[] = {
      R"js({"train": {"grid": {"u": [-3, 3, 20], "v": [-3, 3, 20]}, "x": ["u", "v"], "y": "exp(-u^2) * v"}})js",
      R"js({"train": {"inline": {"x": [[0, 1], [2, 3]], "y": [6, 7]}, "range": [0, 2]},
           "transform": {"x": ["standardize", {"scale": 2}], "y": [{"scale": 0.5}]}})js",
      R"js({"source": {"random": {"rows": 90, "seed": 3, "columns": {"a": {"normal": 1, "shape": [2]}, "b": {"uniform":
           [0, 1]}, "c": {"integers": [0, 9]}, "d": {"bernoulli": 0.5}}}, "x": "a", "y": "b + c * d"},
           "split": [0.5, 0.25, 0.25]})js"};
  for (const std::string& section : sections) {
    // Sizes only: a mutant that asks for a billion rows is granted them otherwise.
    run(section, [&](const std::string& text) {
      DataOptions options;
      options.use = DataUse::sizes;
      return read(text, options).splits.size();
    });
  }
}

TEST_F(MutantsTest, WeightsFiles) {
  GraphBuilder graph(4);
  const Value x = graph.input("x", {kBatch, 2});
  graph.dense("h", x, 3);
  const std::vector<std::pair<std::string, HostTensor>> arrays = {{"h.W", counted(DType::f32, Shape{2, 3})},
                                                                  {"h.b", counted(DType::f32, Shape{3})},
                                                                  {"x:shift", counted(DType::f64, Shape{2})},
                                                                  {"x:scale", counted(DType::f64, Shape{2})}};
  const auto read = [&](const std::string& bytes) {
    write("w", bytes);
    const Weights weights = read_weights(path("w"));
    const std::vector<Diagnostic> found = misfits(weights, graph, Precision::fp32);
    if (!found.empty()) throw Error(ErrorKind::input, found);
    return parameters_of(weights, Precision::fp32).size();
  };
  run(data::npz_bytes(arrays), read);
  run(data::safetensors_bytes(arrays, {{"graphrun.origin", R"({"seed": 1, "samples": 4})"}}), read);
}

// The header alone, packed with its right length, so that what it says is believed.
TEST_F(MutantsTest, SafetensorsHeaders) {
  const std::vector<std::pair<std::string, HostTensor>> arrays = {{"h.W", counted(DType::f32, Shape{2, 3})},
                                                                  {"x:shift", counted(DType::f64, Shape{2})}};
  const std::string bytes = data::safetensors_bytes(arrays, {{"a", "b"}});
  const std::size_t values = 2 * 3 * 4 + 2 * 8, begin = bytes.size() - values;
  const std::string header = bytes.substr(8, bytes.find_last_not_of(' ', begin - 1) + 1 - 8);
  run(header, [&](const std::string& mutant) {
    const data::Safetensors file(
        "w", std::make_shared<const std::string>(test::little(mutant.size(), 8) + mutant + bytes.substr(begin)));
    std::size_t axes = 0;
    for (const std::string& name : file.names()) axes += static_cast<std::size_t>(file.read(name).shape.rank());
    return axes;
  });
}

}  // namespace
}  // namespace graphrun
