// 8-bit images stored in a byte per element (Layout::codes): plans, equal weights and metrics on each executor, readers
// and writers of the data, and data sets that stay f32.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "archives.h"
#include "executors/common/host_executor.h"
#include "executors/ref/ref_executor.h"
#include "graphrun/program.h"
#include "graphrun/verify.h"
#include "prediction_fixture.h"

namespace graphrun {
namespace {

class CodesTest : public PredictionTest {
 protected:
  CodesTest() {
    std::string pixels, classes;
    Dice dice(5);
    for (std::uint32_t i = 0; i < kImages; ++i) {
      for (int pixel = 0; pixel < 64; ++pixel) pixels += static_cast<char>(dice.below(i % 2 == 0 ? 256 : 100));
      classes += static_cast<char>(i % 2);
    }
    write("x.idx", test::idx(8, {kImages, 8, 8}, pixels));
    write("y.idx", test::idx(8, {kImages}, classes));
    write("x.npy", test::npy("|u1", fmt::format("({}, 8)", 8 * kImages), pixels));
  }
  static constexpr std::uint32_t kImages = 45;  // 35 for training: two batches of 16 and one of 3

  // On the CPU both run in tiles; only products of the dense network read rows in place.
  static constexpr const char* kConvolution = R"js("c = conv2d(reshape(x, shape=[-1, 8, 8, 1]), filters=4, size=3)",
      "z = dense(flatten(max_pool(c, size=2)), units=1, activation=sigmoid)")js";
  static constexpr const char* kDense =
      R"js("h = dense(flatten(x), units=8, activation=tanh)", "z = dense(h, units=1)")js";

  static std::string source(const std::string& range) {
    return R"js({"idx": {"x": "x.idx", "y": "y.idx"}, "range": )js" + range + "}";
  }
  void write_images(const std::string& graph, const std::string& transform = R"js({"scale": 0.00392156862745098})js",
                    const std::string& optimizer = R"js({"adam": {"lr": 0.01}})js") const {
    write_parts(R"js("train": )js" + source("[0, 35]") + R"js(, "test": )js" + source("[35, 45]") +
                    R"js(, "transform": {"x": [)js" + transform + "]}",
                graph, R"js(["batch", 1])js", optimizer);
  }
  void write_parts(const std::string& data, const std::string& graph, const std::string& target,
                   const std::string& optimizer) const {
    write("model.json", R"js({"format": 1, "data": {)js" + data + R"js(}, "inputs": {"x": ["batch", 8, 8], "y": )js" +
                            target + R"js(}, "graph": [)js" + graph + R"js(, "loss = mse(z, y)"], "outputs": {"z": "y"},
      "train": {"minimize": "loss", "metrics": ["mse"], "optimizer": )js" +
                            optimizer + R"js(, "batch": 16, "epochs": 3, "shuffle": true}})js");
  }
  Model load(const Overrides& set = {}, DataUse use = DataUse::values) const {
    LoadOptions options;
    options.overrides = set;
    options.data = use;
    return load_model(path("model.json"), options);
  }
  static Model in_f32(Model model) {
    for (Split& split : model.data.splits) split.codes.clear();
    return model;
  }
  // Each data set of x as it is stored.
  static std::string stored(const Program& program) {
    std::string text;
    for (const Buffer& buffer : program.buffers)
      if (buffer.name.starts_with("data/") && buffer.name.ends_with("/x"))
        text += fmt::format("{} {}{}\n", buffer.name, stored_type(buffer),
                            buffer.layout == graphrun::Layout::codes ? fmt::format(", {} bytes", buffer.bytes) : "");
    return text;
  }
  static std::vector<std::string> notes_on_data(FusionSummary fusion) {
    std::erase_if(fusion.notes, [](const std::string& note) { return !note.starts_with("data/"); });
    return fusion.notes;
  }
  static constexpr const char* kInCodes =
      "data/train/x u8(35, 8, 8), 2240 bytes\ndata/test/x u8(10, 8, 8), 640 bytes\n";
  static constexpr const char* kInF32 = "data/train/x f32(35, 8, 8)\ndata/test/x f32(10, 8, 8)\n";
  static SessionOptions options_of(const std::string& executor, bool fuse, int threads = 1) {
    SessionOptions options;
    options.executor = executor, options.fuse = fuse, options.threads = threads;
    return options;
  }

  // Hash of the weights, and the metrics of the test split.
  static std::string trained(Model model, const SessionOptions& options) {
    Session session(std::move(model), options);
    session.train();
    const Metrics metrics = session.evaluate("test");
    return fmt::format("{} {} {}", session.weights_hash(), metrics.loss, metrics.values.front().second);
  }
  void expect_same_training(const Overrides& set = {}) const {
    for (const char* executor : {"ref", "cpu"}) {
      for (const bool fuse : {true, false}) {
        const SessionOptions options = options_of(executor, fuse);
        const std::string expected = trained(in_f32(load(set)), options);
        EXPECT_EQ(trained(load(set), options), expected) << executor << fuse;
        if (options.executor == "ref") continue;
        EXPECT_EQ(trained(load(set), options_of("cpu", fuse, 2)), expected) << fuse << " on two threads";
      }
    }
  }
};

TEST_F(CodesTest, PlanHasOneBytePerPixel) {
  write_images(kConvolution);
  for (const DataUse use : {DataUse::values, DataUse::sizes}) {
    EXPECT_EQ(stored(plan_program(load({}, use))), kInCodes);
    EXPECT_EQ(stored(plan_program(in_f32(load({}, use)))), kInF32);
    EXPECT_EQ(load({}, use).data.warnings, std::vector<std::string>());
  }
}

TEST_F(CodesTest, PlanWithoutTheFilesCountsF32AndReportsIt) {
  write_images(kConvolution);
  std::filesystem::remove(path("x.idx"));
  const Model model = load({}, DataUse::sizes);
  EXPECT_EQ(stored(plan_program(model)), kInF32);
  ASSERT_EQ(model.data.warnings.size(), 1u);
  EXPECT_EQ(model.data.warnings.front(),
            "planned without the data: images count 4 bytes per element, of which those of 8 bits may take 1");
}

TEST_F(CodesTest, PlanReportsADamagedFile) {
  write_images(kConvolution);
  write("x.idx", "no IDX file");
  const std::string text = message([&] { load({}, DataUse::sizes); });
  EXPECT_TRUE(has(text, "not an IDX file")) << text;
}

TEST_F(CodesTest, WeightsAndMetricsEqualThoseOfF32) {
  for (const char* graph : {kConvolution, kDense}) {
    write_images(graph);
    expect_same_training();
    expect_same_training({{"train.shuffle", "false"}});
    expect_same_training({{"train.last_batch", "drop"}});
    expect_same_training({{"train.precision", "\"fp64\""}});
    expect_same_training({{"train.shards", "2"}});
  }
}

// The height of a tile, and with it the order of sums over rows, depends on the values that are read in place.
TEST_F(CodesTest, ABatchOfAllRowsIsReadInPlace) {
  for (const char* graph : {kConvolution, kDense}) {
    write_images(graph);
    const Overrides all = {{"train.batch", "\"all\""}, {"train.shuffle", "false"}};
    expect_same_training(all);
    FusionSummary fusion;
    EXPECT_EQ(stored(plan_program(load(all), options_of("cpu", false), &fusion)),
              "data/train/x f32(35, 8, 8)\ndata/test/x u8(10, 8, 8), 640 bytes\n");
    EXPECT_EQ(notes_on_data(fusion),
              std::vector<std::string>{"data/train/x is stored in 4 bytes per element, not in 1: a "
                                       "batch of all its rows is read in place"});
    expect_same_training({{"train.batch", "\"all\""}});
  }
}

TEST_F(CodesTest, WeightsEqualThoseOfF32ForRandomBatchesAndScales) {
  Dice dice(17);
  for (int i = 0; i < 12; ++i) {
    const double scale = (1 + dice.below(1000)) / (1.0 + dice.below(100000));
    write_images(dice.coin() ? kConvolution : kDense,
                 fmt::format(R"js({{"scale": {}}}{})js", scale, dice.coin() ? "" : R"js(, {"scale": 0.3})js"));
    expect_same_training({{"train.batch", std::to_string(1 + dice.below(35))},
                          {"train.shuffle", dice.coin() ? "true" : "false"},
                          {"train.epochs", "1"}});
  }
}

// Rows in place have no bytes in a tile, whose height would change with them.
TEST_F(CodesTest, ProductsReadRowsInPlaceInF32) {
  write_images(kDense);
  FusionSummary fusion;
  EXPECT_EQ(stored(plan_program(load(), options_of("cpu", true), &fusion)),
            "data/train/x u8(35, 8, 8), 2240 bytes\ndata/test/x f32(10, 8, 8)\n");
  EXPECT_EQ(notes_on_data(fusion), std::vector<std::string>{"data/test/x is stored in 4 bytes per element, not in 1: a "
                                                            "product reads its rows in place"});
}

TEST_F(CodesTest, AStepKernelReadsF32) {
  write_images(kDense);
  FusionSummary fusion;
  SessionOptions options = options_of("cuda", true);
  EXPECT_EQ(stored(plan_program(load(), options, &fusion)), kInF32);
  const std::vector<std::string> notes = notes_on_data(fusion);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes.front(), "data/train/x is stored in 4 bytes per element, not in 1: a step kernel reads its rows");
  options.jit = Jit::off;
  EXPECT_EQ(stored(plan_program(load(), options)), kInCodes);
}

TEST_F(CodesTest, OtherNumbersAreF32) {
  write_images(kConvolution, R"js("standardize")js");
  EXPECT_EQ(stored(plan_program(load())), kInF32);
  write_images(kConvolution, R"js({"scale": -1})js");
  EXPECT_EQ(stored(plan_program(load())), kInF32);
}

TEST_F(CodesTest, WindowsOverSharedRowsAreF32) {
  const auto write_windows = [&](int hop) {
    write_parts(fmt::format(R"js("source": {{"npy": {{"x": "x.npy", "y": "x.npy"}},
                  "window": {{"length": 8, "hop": {}, "target": 1}}}})js",
                            hop),
                R"js("z = dense(flatten(x), units=8)")js", R"js(["batch", 8])js", R"js({"sgd": {"lr": 0.000001}})js");
  };
  write_windows(1);
  FusionSummary fusion;
  EXPECT_EQ(stored(plan_program(load(), {}, &fusion)), "data/train/x f32(359, 8)\n");
  EXPECT_EQ(notes_on_data(fusion),
            std::vector<std::string>{"data/train/x is stored in 4 bytes per element, not in 1: a "
                                     "step other than minibatch reads it"});
  write_windows(8);  // each row is in one window
  EXPECT_EQ(stored(plan_program(load())), "data/train/x u8(44, 8, 8), 2816 bytes\n");
  Session session(load()), other(in_f32(load()));
  session.train();
  other.train();
  EXPECT_EQ(session.weights_hash(), other.weights_hash());
}

TEST_F(CodesTest, ABudgetCountsBytes) {
  write_images(kConvolution);
  const std::uint64_t bytes = plan_program(load(), options_of("cpu", false)).arena_bytes;
  const Overrides set = {{"train.max_memory", std::to_string(bytes)}};
  EXPECT_EQ(plan_program(load(set), options_of("cpu", false)).arena_bytes, bytes);
  EXPECT_EQ(trained(load(set), options_of("cpu", false)), trained(load(), options_of("cpu", false)));
}

TEST_F(CodesTest, ImportanceEqualsThatOfF32) {
  write_images(kConvolution);
  const auto increases = [&](Model model) {
    Session session(std::move(model), options_of("cpu", true));
    session.train();
    std::string text;
    for (const Importance& one : session.importance("test", "loss", 3))
      text += fmt::format("{} {}\n", one.mean, one.std_dev);
    return text + fmt::format("{}", session.evaluate("test").loss);  // the data are restored
  };
  EXPECT_EQ(increases(load()), increases(in_f32(load())));
}

TEST_F(CodesTest, IntervalsEqualThoseOfF32) {
  write_images(R"js("z = mean(flatten(x), axis=1, keepdims=true) * a + b")js", R"js({"scale": 0.01})js",
               R"js({"sgd": {"lr": 0.01}})js");
  const auto errors = [&](Model model) {
    Session session(std::move(model), options_of("cpu", false));
    session.train();
    std::string text;
    for (const ParameterInterval& one : session.intervals().parameters)
      text += fmt::format("{} {} {}\n", one.parameter, one.value, one.std_error);
    return text;
  };
  const Overrides set = {{"parameters", R"({"a": {"shape": [], "init": 0.5}, "b": {"shape": [], "init": 0.1}})"}};
  EXPECT_EQ(stored(plan_program(load(set), options_of("cpu", false))), kInCodes);
  EXPECT_EQ(errors(load(set)), errors(in_f32(load(set))));
}

TEST_F(CodesTest, ASessionReadsAndWritesF32) {
  write_images(kConvolution);
  Session session(load()), other(in_f32(load()));
  const HostTensor given = session.read("data/train/x");
  EXPECT_EQ(given.dtype(), DType::f32);
  EXPECT_TRUE(std::ranges::equal(given.bytes(), other.read("data/train/x").bytes()));

  HostTensor changed = given;  // the images in another order
  const std::size_t image = 64 * sizeof(float);
  std::rotate(changed.bytes().begin(), changed.bytes().begin() + static_cast<std::ptrdiff_t>(5 * image),
              changed.bytes().end());
  for (Session* const one : {&session, &other}) {
    one->write("data/train/x", changed);
    one->write_rows(one->find("data/train/x"), 33, given.bytes().subspan(0, 2 * image));
    one->train();
  }
  EXPECT_TRUE(std::ranges::equal(session.read("data/train/x").bytes(), other.read("data/train/x").bytes()));
  EXPECT_EQ(session.weights_hash(), other.weights_hash());
}

TEST_F(CodesTest, ASessionRejectsOtherValues) {
  write_images(kConvolution);
  Model model = load();
  HostTensor changed = model.data.splits.front().columns.front().second;
  for (const float value : {0.5F, -0.0F, 256 / 255.0F, -1 / 255.0F, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    changed.elements<float>()[70] = value;
    Session session(load());
    const std::string text = message([&] { session.write("data/train/x", changed); });
    EXPECT_TRUE(has(text, "'data/train/x' is stored in a byte per element, as k / 255 with k from 0 to 255, and " +
                              fmt::format("{}", value) + " is not one of these values"))
        << text;
    EXPECT_TRUE(has(text, "a split with \"rows_vary\" is stored as f32 and takes any values")) << text;
  }
  model.data.splits.front().rows_vary = true;
  Session session(std::move(model));
  session.write("data/train/x", changed);
  EXPECT_TRUE(std::ranges::equal(session.read("data/train/x").bytes(), changed.bytes()));
}

TEST_F(CodesTest, ExecutorsThatTakeNoCodesGetF32) {
  class Plain final : public HostExecutor {
   public:
    std::string_view name() const override { return "plain"; }
    HostKernel kernel(const StepSignature& step) const override { return RefExecutor().kernel(step); }
  };
  write_images(kConvolution);
  SessionOptions options;
  options.custom_executor = std::make_shared<Plain>();
  FusionSummary fusion;
  EXPECT_EQ(stored(plan_program(load(), options, &fusion)), kInF32);
  ASSERT_EQ(notes_on_data(fusion).size(), 2u);
  EXPECT_EQ(notes_on_data(fusion).front(),
            "data/train/x is stored in 4 bytes per element, not in 1: plain does not decode bytes");
  EXPECT_EQ(trained(load(), options), trained(in_f32(load()), options_of("ref", false)));
  const Program program = plan_program(load(), options_of("ref", false));
  const std::string text = message([&] { Plain().load(program); });
  EXPECT_TRUE(has(text, "(minibatch) reads no data in a byte per element")) << text;
}

TEST_F(CodesTest, VerifyComparesExecutorsOnCodes) {
  for (const char* graph : {kConvolution, kDense}) {
    write_images(graph);
    for (const bool fuse : {true, false}) {
      VerifyOptions options;
      options.fuse = fuse;
      const VerifyReport report = verify(load(), options);
      EXPECT_TRUE(report.passed()) << fuse;
    }
  }
}

}  // namespace
}  // namespace graphrun
