// The verifier: passes what is right, finds each planted mistake and names the step.
#include "graphrun/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "graph/ops/op_def.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/movement.h"
#include "graphrun/params/random.h"
#include "graphrun/params/scalar.h"
#include "graphrun/session.h"
#include "session/verify/compare.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/source_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using test::Hands;
using test::MutantExecutor;
using test::Mutation;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Seven samples in batches of three: the third batch has one row. Square matrices, so that a wrong transposition or
// axis is not seen from shapes.
Model verified_model(std::string optimizer = "momentum") {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 4});
  graph.input("y", {kBatch, 4});
  graph.parameter("W", {4, 4}, Init::uniform(-1, 1));
  graph.parameter("V", {4, 4}, Init::uniform(-1, 1));
  graph.parameter("c", {4}, Init::uniform(0.5, 1));
  graph.parameter("wide", {8, 8}, Init::uniform(-1, 1));  // 256 bytes: the next buffer lies right behind
  graph.expression("z = x @ W");
  graph.expression("a = z + c");
  graph.expression("h = tanh(a)");
  graph.name(graph.op("leaky_relu", {graph.find("z")}, {{"slope", 0.25}}), "leaky");
  graph.name(graph.op("clip", {graph.find("z")}, {{"low", -0.25}, {"high", 0.25}}), "clipped");
  graph.expression("q = leaky / (square(a) + 1)");
  graph.name(graph.op("greater", {graph.find("z"), graph.find("clipped")}), "above");
  graph.name(graph.op("where", {graph.find("above"), graph.find("h"), graph.find("q")}), "mixed");
  graph.expression("p = mixed @ V");
  graph.expression("d = p - y");
  graph.name(graph.op("sum", {graph.expression("V * V")}, {{"axes", std::vector<std::int64_t>{0}}}), "columns");
  graph.name(graph.op("tanh", {graph.find("wide")}), "bent");
  graph.expression("error = mean(square(d))");
  graph.expression("loss = error + 0.001 * (sum(columns) + sum(bent))");
  Model model(std::move(graph));
  model.name = "small";
  model.outputs = {{model.graph.find("p"), "p", "y"}};
  model.train.minimize = model.graph.find("loss");
  model.train.metrics = {{"mse", {}}};
  model.train.optimizer = {std::move(optimizer), {{"lr", 0.1}}, {}};
  model.train.seed = 3;
  const auto columns = [](std::string_view split, std::int64_t rows) {
    return std::vector<std::pair<std::string, HostTensor>>{
        {"x", test::random_tensor(DType::f32, {rows, 4}, -1, 1, fmt::format("{}/x", split))},
        {"y", test::random_tensor(DType::f32, {rows, 4}, -1, 1, fmt::format("{}/y", split))}};
  };
  model.data.splits = {{"train", columns("train", 7)}, {"test", columns("test", 5)}};
  return model;
}

// Classes, draws and elements that move: what verified_model() leaves out.
Model classifier() {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 4});
  graph.input("label", {kBatch}, DType::i32);
  graph.parameter("W", {4, 6}, Init::uniform(-20, 20));  // confident: some losses are nearly 0
  graph.parameter("table", {6, 2}, Init::uniform(-1, 1));
  using List = std::vector<std::int64_t>;
  graph.name(graph.op("dropout", {graph.find("x")}, {{"rate", 0.25}}), "kept");
  graph.expression("logits = kept @ W");
  graph.name(graph.op("softmax", {graph.find("logits")}), "probability");
  graph.name(graph.op("log_softmax", {graph.find("logits")}), "logarithm");
  graph.name(graph.op("softmax_cross_entropy", {graph.find("logits"), graph.find("label")}), "surprise");
  graph.name(graph.op("logsumexp", {graph.find("logits")}, {{"axes", List{1}}}), "top");
  graph.name(graph.op("max", {graph.find("logits")}, {{"axes", List{1}}}), "largest");
  graph.name(graph.op("prod", {graph.find("probability")}, {{"axes", List{1}}}), "product");
  graph.name(graph.op("argmax", {graph.find("logits")}), "guess");
  graph.name(graph.op("one_hot", {graph.find("guess")}, {{"classes", std::int64_t{6}}}), "hot");
  graph.name(graph.op("gather", {graph.find("table"), graph.find("label")}), "rows");
  graph.name(graph.op("transpose", {graph.find("table")}), "turned");
  graph.name(graph.op("slice", {graph.find("logits")}, {{"axis", std::int64_t{1}}, {"start", std::int64_t{2}}}),
             "part");
  graph.name(graph.op("concat", {graph.find("part"), graph.find("rows")}, {{"axis", std::int64_t{1}}}), "joined");
  graph.name(graph.op("cast", {graph.find("hot")}, {{"dtype", std::string("f32")}}), "guessed");
  graph.expression("right = guessed * probability");
  graph.expression(
      "loss = mean(surprise) + 0.01 * (mean(top - largest) + mean(product) + mean(square(joined)) "
      "+ mean(logarithm) + mean(right) + sum(square(turned)))");
  Model model(std::move(graph));
  model.name = "classifier";
  model.outputs = {{model.graph.find("probability"), "probability", ""}};
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.01}}, {}};
  model.train.shuffle = true;
  model.data.splits = {{"train",
                        {{"x", test::random_tensor(DType::f32, {7, 4}, -1, 1, "x")},
                         {"label", test::random_tensor(DType::i32, {7}, 0, 6, "label")}}}};
  return model;
}

// ---- what is right

TEST(Verify, ExecutorsAgree) {
  for (const auto& [name, executor] : test::executors().present) {
    for (const char* optimizer : {"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw"}) {
      for (const bool passes : {true, false}) {
        VerifyOptions options;
        options.executor = name;
        options.passes = passes;
        const VerifyReport report = verify(verified_model(optimizer), options);
        ASSERT_TRUE(report.passed()) << name << " " << optimizer << "\n" << to_string(*report.difference);
        EXPECT_EQ(report.training_steps, 3u);
        EXPECT_EQ(report.evaluation_steps, 3u + 2u);
        EXPECT_EQ(report.predictions, 2u);
        EXPECT_EQ(report.regions > 0, passes && name == "cpu") << report.regions;
        EXPECT_GT(report.fused_values, 500u);
        EXPECT_GT(report.values, 1000u);
        ASSERT_FALSE(report.ops.empty());
        EXPECT_LE(report.ops.front().worst, 0.25);
        std::uint64_t values = 0;
        for (const OpAgreement& op : report.ops) values += op.values;
        EXPECT_EQ(values, report.values);
      }
    }
  }
}

TEST(Verify, ExecutorsAgreeOnClassesAndDraws) {
  for (const auto& [name, executor] : test::executors().present) {
    std::set<std::string> ops;
    for (const bool passes : {true, false}) {  // with passes some ops are shown to their readers, and are no steps
      VerifyOptions options;
      options.executor = name;
      options.passes = passes;
      options.steps = 7;
      const VerifyReport report = verify(classifier(), options);
      ASSERT_TRUE(report.passed()) << name << "\n" << to_string(*report.difference);
      for (const OpAgreement& entry : report.ops) ops.insert(entry.op);
    }
    for (const char* op : {"dropout", "softmax", "log_softmax", "softmax_cross_entropy", "logsumexp", "max", "prod",
                           "argmax", "one_hot", "gather", "transpose", "slice", "concat", "minibatch"})
      EXPECT_EQ(ops.count(op), 1u) << op;
  }
}

TEST(Verify, ModelsOfTheRepositoryAgree) {
  const std::string folder = source_folder() + "/models/";
  for (const char* batch : {"all", "3", "1"}) {
    const Model model = load_model(folder + "xor.json", {"", {{"train.batch", batch}}});
    const VerifyReport report = verify(model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
  const char* environment = std::getenv("GRAPHRUN_TEST_DATA");
  const std::string data = environment ? environment : source_folder() + "/../shared/data";
  if (!std::filesystem::exists(data + "/realestate.json")) GTEST_SKIP() << "realestate.json is not there";
  for (const char* batch : {"all", "100"}) {
    const VerifyReport report = verify(load_model(folder + "linear_regression.json", {data, {{"train.batch", batch}}}));
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
}

TEST(Verify, AShortLastBatchIsAlwaysAmongTheSteps) {
  VerifyOptions options;
  options.steps = 1;
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_EQ(report.training_steps, 2u);
  EXPECT_EQ(report.evaluation_steps, 2u + 2u);
  options.steps = 5;
  EXPECT_EQ(verify(verified_model(), options).training_steps, 5u);
  options.steps = 1;
  const Model divides = load_model(source_folder() + "/models/xor.json", {"", {{"train.batch", "2"}}});
  EXPECT_EQ(verify(divides, options).training_steps, 1u);
}

TEST(Verify, NothingIsToldAsAnError) {
  VerifyOptions options;
  options.steps = 0;
  EXPECT_THROW(verify(verified_model(), options), Error);
  Model model = load_model(source_folder() + "/models/xor.json");
  model.train.minimize = {};
  model.outputs = {};
  for (const bool trajectory : {false, true}) {
    try {
      options.steps = 1;
      options.trajectory = trajectory;
      verify(model, options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics()[0].code, "verify.nothing");
    }
  }
}

// ---- planted mistakes

std::function<bool(const Program&, const Step&)> named(std::string name) {
  return [name](const Program&, const Step& step) { return step.name == name; };
}
std::function<bool(const Program&, const Step&)> first(Op op) {
  return [op](const Program&, const Step& step) { return step.op == op; };
}
// The step that writes the state.
std::function<bool(const Program&, const Step&)> writes(std::string state) {
  return [state](const Program& program, const Step& step) {
    return program.buffers[program.buffers[step.output].storage].name == state;
  };
}

void transpose(std::vector<float>& m) {
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) std::swap(m[i * 4 + j], m[j * 4 + i]);
  }
}

// What the step had as input `i` when it ran before.
Mutation stale_input(std::function<bool(const Program&, const Step&)> pick, std::size_t i) {
  struct Memory {
    std::vector<std::byte> now, last;
  };
  const auto memory = std::make_shared<Memory>();
  return {std::move(pick),
          {},
          [=](const Hands& hands) {
            memory->now = hands.bytes(hands.step.inputs[i]);
            if (hands.runs > 0) hands.write(hands.step.inputs[i], memory->last);
            memory->last = memory->now;
          },
          [=](const Hands& hands) { hands.write(hands.step.inputs[i], memory->now); }};
}

// Changes the first element of the nearest storage that begins behind the output's.
void touch_next(const Hands& hands) {
  const Buffer& out = hands.program.buffers[hands.step.output];
  BufferId next = kNoBuffer;
  for (BufferId id = 0; id < hands.program.buffers.size(); ++id) {
    const Buffer& buffer = hands.program.buffers[id];
    const bool behind = buffer.storage == id && buffer.bytes > 0 && buffer.offset >= out.offset + out.bytes;
    if (behind && (next == kNoBuffer || buffer.offset < hands.program.buffers[next].offset)) next = id;
  }
  std::vector<std::byte> bytes = hands.bytes(next);
  bytes[0] ^= std::byte{1};
  hands.write(next, bytes);
}

void touch_state(const Hands& hands, std::string_view state) {
  const BufferId id = find_buffer(hands.program, state);
  std::vector<std::byte> bytes = hands.bytes(id);
  bytes[bytes.size() / 2] ^= std::byte{1};
  hands.write(id, bytes);
}

float bfloat16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0xffff0000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

struct Planted {
  std::string name;
  Mutation mutation;
  Difference::Kind kind = Difference::Kind::value;
  Model (*model)() = [] { return verified_model(); };
};

template <class F>
Mutation after(std::function<bool(const Program&, const Step&)> pick, F f) {
  return {std::move(pick), {}, {}, [f](const Hands& hands) { hands.change_output(f); }};
}
using Floats = std::vector<float>;

std::vector<Planted> planted() {
  const auto outside = Difference::Kind::outside, value = Difference::Kind::value;
  const auto flip = [](Step& step) {
    auto& params = step.params.as<MatmulParams>();
    params.transpose_b = !params.transpose_b;
  };
  const auto swap_operands = [](Step& step) { std::swap(step.inputs[0], step.inputs[1]); };
  const auto old = std::make_shared<std::vector<std::byte>>();
  return {
      {"operand_transposed", {named("train/z"), flip}},
      {"result_transposed", after(named("train/V:gradient"), transpose)},
      {"one_row_off", after(named("train/z"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.end()); })},
      {"one_column_off", after(named("train/p"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 1, m.end()); })},
      {"last_element_missing",
       {named("train/a"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) {
          std::vector<std::byte> now = h.bytes(h.step.output);
          std::copy(old->end() - 4, old->end(), now.end() - 4);
          h.write(h.step.output, now);
        }}},
      {"never_launched",
       {named("train/d"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) { h.write(h.step.output, *old); }}},
      {"adds_to_what_was_there",
       {named("train/W:gradient"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) {
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) {
              float before;
              std::memcpy(&before, old->data() + i * sizeof(float), sizeof(float));
              m[i] += before;
            }
          });
        }}},
      {"wrong_sign", after(named("train/h"),
                           [](Floats& m) {
                             for (float& x : m) x = -x;
                           })},
      {"last_term_of_k_missing",
       {named("train/p"),
        {},
        {},
        [](const Hands& h) {
          const Floats a = h.read<float>(h.step.inputs[0]), b = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) m[i] -= a[i / 4 * 4 + 3] * b[3 * 4 + i % 4];
          });
        }}},
      {"sub_operands_exchanged", {named("train/d"), swap_operands}},
      {"div_operands_exchanged", {named("train/q"), swap_operands}},
      {"where_operands_exchanged",
       {named("train/mixed"), [](Step& step) { std::swap(step.inputs[1], step.inputs[2]); }}},
      {"matmul_operand_stale", stale_input(named("train/p"), 1)},
      {"batch_operand_stale", stale_input(named("train/d"), 1)},
      {"row_count_ignored", {named("train/a"), [](Step& step) { step.row_count = kNoBuffer; }}},
      {"rows_behind_the_batch_not_zero",
       {named("train/h"),
        {},
        {},
        [](const Hands& h) {
          if (h.rows() < 3) h.change_output([](Floats& m) { m.back() = 1; });
        }}},
      {"attribute_ignored",
       {named("train/leaky"),
        [](Step& step) {
          step.params = ScalarParams{0.01, 0};
        }}},
      {"bound_ignored", {named("train/clipped"), [](Step& step) { step.params.as<ScalarParams>().b = 1e9; }}},
      {"wrong_axis", {named("train/columns"), [](Step& step) { step.params.as<ReduceParams>().axes = 2; }}},
      {"another_function", {named("train/h"), [](Step& step) { step.op = Op::sigmoid; }}},
      {"comparison_not_strict", {named("train/above"), [](Step& step) { step.op = Op::greater_equal; }}},
      {"one_element_off", after(named("train/W:gradient"), [](Floats& m) { m[6] *= 1.001f; })},
      {"crude_approximation", after(named("train/h"),
                                    [](Floats& m) {
                                      for (float& x : m) x *= 1.00003f;
                                    })},
      {"short_floats",
       {named("train/z"),
        {},
        {},
        [](const Hands& h) {
          const Floats a = h.read<float>(h.step.inputs[0]), b = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) {
              m[i] = 0;
              for (std::size_t k = 0; k < 4; ++k) m[i] += bfloat16(a[i / 4 * 4 + k]) * bfloat16(b[k * 4 + i % 4]);
            }
          });
        }}},
      {"a_nan", after(named("train/leaky"), [](Floats& m) { m[1] = kNan; })},
      {"an_infinity", after(named("train/q"), [](Floats& m) { m[2] = std::numeric_limits<float>::infinity(); })},
      {"writes_behind_its_output", {named("train/bent"), {}, {}, touch_next}, outside},
      {"writes_a_far_parameter", {named("train/h"), {}, {}, [](const Hands& h) { touch_state(h, "wide"); }}, outside},
      {"writes_the_data_set",
       {named("train/q"), {}, {}, [](const Hands& h) { touch_state(h, "data/test/y"); }},
       outside},
      {"writes_a_parameter_too_early",
       {named("train/d"), {}, {}, [](const Hands& h) { touch_state(h, "V"); }},
       outside},
      {"batch_one_row_late",
       after(named("train/x"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.end()); })},
      {"row_count_one_short",
       {first(Op::row_count),
        {},
        {},
        [](const Hands& h) { h.change_output<std::int32_t>([](std::vector<std::int32_t>& n) { n[0] -= 1; }); }}},
      {"counter_advanced_twice",
       {first(Op::increment),
        {},
        {},
        [](const Hands& h) { h.change_output<std::uint64_t>([](std::vector<std::uint64_t>& n) { n[0] += 1; }); }}},
      {"record_at_the_wrong_place",
       {first(Op::record),
        {},
        {},
        [](const Hands& h) {
          const std::uint64_t at = h.read<std::uint64_t>(h.step.inputs[2])[0];
          h.change_output([&](Floats& ring) { std::swap(ring[at], ring[at + 1]); });
        }}},
      {"update_done_twice",
       {writes("W"),
        {},
        {},
        [](const Hands& h) {
          const Floats change = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) m[i] -= change[i];
          });
        }}},
      {"velocity_forgotten",
       {writes("W:velocity"),
        {},
        {},
        [](const Hands& h) { h.change_output([](Floats& m) { std::fill(m.begin(), m.end(), 0.0f); }); }}},
      {"wrong_from_the_second_step_on",
       {named("train/loss"),
        {},
        {},
        [](const Hands& h) {
          if (h.runs > 0) h.change_output([](Floats& m) { m[0] += 0.01f; });
        }}},
      {"only_the_evaluation", after(named("evaluate.test/p"), [](Floats& m) { m[0] += 0.01f; })},
      {"other_random_bits",
       {named("train/kept"), [](Step& step) { step.params.as<RandomParams>().key += 1; }},
       value,
       classifier},
      {"rows_not_shuffled",
       {named("train/x"), [](Step& step) { step.params.as<MinibatchParams>().shuffle = false; }},
       value,
       classifier},
      {"rows_drawn_by_another_key",
       {named("train/label"), [](Step& step) { step.params.as<MinibatchParams>().key += 1; }},
       value,
       classifier},
      {"logarithm_of_softmax",
       {named("train/probability"), [](Step& step) { step.op = Op::log_softmax; }},
       value,
       classifier},
      {"smallest_for_largest", {named("train/largest"), [](Step& step) { step.op = Op::min; }}, value, classifier},
      {"sum_for_product", {named("train/product"), [](Step& step) { step.op = Op::sum; }}, value, classifier},
      {"argmin_for_argmax", {named("train/guess"), [](Step& step) { step.op = Op::argmin; }}, value, classifier},
      {"slice_one_off",
       {named("train/part"), [](Step& step) { step.params.as<SliceParams>().start -= 1; }},
       value,
       classifier},
      {"concat_operands_exchanged",
       after(named("train/joined"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.begin() + 6); }), value,
       classifier},
      {"loss_of_the_next_class",
       {named("train/surprise"),
        {},
        [=](const Hands& h) {
          *old = h.bytes(h.step.inputs[1]);
          std::vector<std::int32_t> labels = h.read<std::int32_t>(h.step.inputs[1]);
          for (std::int32_t& label : labels) label = (label + 1) % 6;
          h.write(h.step.inputs[1], labels);
        },
        [=](const Hands& h) { h.write(h.step.inputs[1], *old); }},
       value,
       classifier},
  };
}

class PlantedMistakes : public ::testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(PlantedMistakes, AreFoundAndTheStepIsNamed) {
  const auto& [inner, which] = GetParam();
  Planted plant = planted()[which];
  const auto mutant = std::make_shared<MutantExecutor>(test::executor(inner), plant.mutation);
  VerifyOptions options;
  options.custom_executor = mutant;
  const VerifyReport report = verify(plant.model(), options);
  ASSERT_FALSE(report.passed());
  const Difference& found = *report.difference;
  EXPECT_EQ(found.node, mutant->victim().name) << to_string(found);
  EXPECT_EQ(found.op, name_of(mutant->victim().op)) << to_string(found);
  EXPECT_EQ(found.kind, plant.kind) << to_string(found);
  EXPECT_NE(found.got, found.expected);
  EXPECT_NE(to_string(found).find(found.node), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Verify, PlantedMistakes,
                         ::testing::Combine(::testing::Values("ref", "cpu"),
                                            ::testing::Range<std::size_t>(0, planted().size())),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              planted()[std::get<1>(test.param)].name);
                         });

TEST(Verify, AMutantWithoutAMistakePasses) {
  VerifyOptions options;
  options.custom_executor =
      std::make_shared<MutantExecutor>(test::executor("cpu"), Mutation{named("train/z"), {}, {}, {}});
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
}

// Keeps what the host wrote last out of the arena: constants of the Program are never written.
class ForgetsConstants final : public Executor {
 public:
  std::string_view name() const override { return "forgets"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature&, const Target&) const override { return Support::with_workspace(0); }
  std::unique_ptr<Runnable> load(const Program& program) override {
    Program without = program;
    without.initial.clear();
    return test::executor("ref")->load(without);
  }
};

TEST(Verify, StatesThatStartDifferentlyAreFound) {
  VerifyOptions options;
  options.custom_executor = std::make_shared<ForgetsConstants>();
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::start);
}

TEST(Verify, TheDifferenceShowsWhereItIs) {
  VerifyOptions options;
  options.custom_executor =
      std::make_shared<MutantExecutor>(test::executor("ref"), after(named("train/W:gradient"), [](Floats& m) {
                                         for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i);
                                       }));
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  const Difference& found = *report.difference;
  EXPECT_EQ(found.phase, "train");
  EXPECT_EQ(found.phase_step, 0u);
  EXPECT_EQ(found.index, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(found.got, "0");
  EXPECT_GT(found.tolerance, 0);
  const std::string text = to_string(found);
  EXPECT_NE(text.find("train, step 0: train/W:gradient (matmul, "), std::string::npos) << text;
  EXPECT_NE(text.find("[0]"), std::string::npos) << text;
  EXPECT_NE(text.find("10*"), std::string::npos) << text;
  EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
}

// ---- what a Session runs

// The executor `cpu` with regions, and a mistake in what it runs whole: in run(), or in regions.
struct Faults {
  bool predicts = true;  // run() of the prediction does its steps
  bool repeats = true;   // run(n) does n steps
  // After the first region of the phase the last element of a value that it combines over rows is off.
  std::string phase = {};
  float by = 0;
};
class FaultyRunnable final : public Runnable {
 public:
  FaultyRunnable(Program program, const Faults& faults)
      : program_(std::move(program)), faults_(faults), inner_(test::executor("cpu")->load(program_)) {}
  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_->write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_->read_range(buffer, first, bytes);
  }
  void run(PhaseId phase, std::uint64_t n) override {
    const std::string& name = program_.phases[phase].name;
    if (name == "predict" && !faults_.predicts) return;
    if (!faults_.repeats) n = std::min<std::uint64_t>(n, 2);
    inner_->run(phase, n);
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    inner_->run_steps(phase, first, last);
    const Phase& whole = program_.phases[phase];
    if (whole.name != faults_.phase || whole.regions.empty()) return;
    if (first > whole.regions[0].first() || last < whole.regions[0].last) return;
    const BufferId id = whole.regions[0].stages.back().combines.at(0).value;
    std::vector<float> values(program_.buffers.at(id).type.bytes() / sizeof(float));
    inner_->read(id, std::as_writable_bytes(std::span(values)));
    values.back() += faults_.by;
    inner_->write(id, std::as_bytes(std::span(values)));
  }

 private:
  Program program_;
  Faults faults_;
  std::unique_ptr<Runnable> inner_;
};
class FaultyExecutor final : public Executor {
 public:
  explicit FaultyExecutor(Faults faults) : faults_(std::move(faults)), inner_(test::executor("cpu")) {}
  std::string_view name() const override { return "faulty"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    return inner_->supports(step, target);
  }
  RegionPlan plan_region(const RegionSignature& region, const Target& target) const override {
    return inner_->plan_region(region, target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    return std::make_unique<FaultyRunnable>(program, faults_);
  }

 private:
  Faults faults_;
  std::shared_ptr<Executor> inner_;
};

VerifyReport verify_with(Faults faults, const Model& model) {
  VerifyOptions options;
  options.custom_executor = std::make_shared<FaultyExecutor>(std::move(faults));
  return verify(model, options);
}

TEST(VerifyRuns, NoFaultPasses) {
  for (const Model& model : {verified_model(), classifier()}) {
    const VerifyReport report = verify_with({}, model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
    EXPECT_GT(report.regions, 0u);
  }
}

TEST(VerifyRuns, APredictionThatDoesNothingIsFound) {
  const VerifyReport report = verify_with({.predicts = false}, verified_model());
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::fused);
  EXPECT_EQ(report.difference->buffer, "predict/p");
  EXPECT_NE(to_string(*report.difference).find("predict/p is wrong after the whole phase"), std::string::npos)
      << to_string(*report.difference);
}

TEST(VerifyRuns, ManyStepsThatAreTooFewAreFound) {
  const VerifyReport report = verify_with({.repeats = false}, verified_model());
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::repeat) << to_string(*report.difference);
}

TEST(VerifyRuns, AValueThatLeavesARegionWrongIsFound) {
  for (const char* phase : {"train", "evaluate.test"}) {
    for (const float by : {1e-3f, 1.0f, kNan}) {
      const VerifyReport report = verify_with({.phase = phase, .by = by}, verified_model());
      ASSERT_FALSE(report.passed()) << phase << " " << by;
      EXPECT_EQ(report.difference->kind, Difference::Kind::fused);
      EXPECT_EQ(report.difference->phase, phase);
      EXPECT_FALSE(report.difference->node.empty());
    }
  }
}

// Rounding is let through, wherever a comparison stands in its way.
TEST(VerifyRuns, ValuesOnTheEdgeOfAComparisonMayFallEitherWay) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GraphBuilder graph(64);
    graph.input("x", {kBatch, 8});
    graph.parameter("W", {8, 16}, Init::uniform(-1, 1));
    graph.parameter("V", {16, 1}, Init::uniform(-1, 1));
    graph.expression("h = relu(x @ W)");
    graph.expression("p = h @ V");
    graph.expression("loss = mean(abs(p - p * p))");
    Model model(std::move(graph));
    model.outputs = {{model.graph.find("p"), "p", ""}};
    model.train.minimize = model.graph.find("loss");
    model.train.seed = seed;
    model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {100, 8}, -1, 1, fmt::format("{}", seed))}}}};
    const VerifyReport report = verify(model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
}

// ---- side by side

TEST(Verify, ATrajectoryTellsHowRoundingGrows) {
  VerifyOptions options;
  options.trajectory = true;
  options.steps = 40;
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_TRUE(report.passed());
  ASSERT_EQ(report.growth.size(), 40u);
  EXPECT_EQ(report.growth[7].step, 8u);
  for (const Divergence& at : report.growth) EXPECT_LT(at.difference, 1e-4) << at.step << " " << at.parameter;
  EXPECT_GT(report.growth.back().difference, 0);
}

TEST(Verify, ATrajectoryFailsBeyondItsBoundOnly) {
  VerifyOptions options;
  options.trajectory = true;
  options.steps = 5;
  options.custom_executor = std::make_shared<MutantExecutor>(
      test::executor("cpu"), after(named("train/V:gradient"), [](Floats& m) { m[5] += 0.01f; }));
  const VerifyReport free = verify(verified_model(), options);
  EXPECT_TRUE(free.passed());
  EXPECT_EQ(free.growth.back().parameter, "V");
  options.tolerance = 1e-4;
  const VerifyReport bounded = verify(verified_model(), options);
  ASSERT_FALSE(bounded.passed());
  EXPECT_EQ(bounded.difference->kind, Difference::Kind::parameter);
  EXPECT_EQ(bounded.difference->buffer, "V");
  EXPECT_EQ(bounded.difference->index, (std::vector<std::int64_t>{1, 1}));
}

TEST(Verify, ATrajectoryOfNanFails) {
  VerifyOptions options;
  options.trajectory = true;
  options.custom_executor = std::make_shared<MutantExecutor>(
      test::executor("cpu"), after(named("train/V:gradient"), [](Floats& m) { m[5] = kNan; }));
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->got, "nan");
}

// ---- tolerances

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(Compare, TolerancesFollowTheOp) {
  EXPECT_EQ(agreement_of(Op::tanh), Agreement::relative);
  EXPECT_EQ(agreement_of(Op::sub), Agreement::relative);
  EXPECT_EQ(agreement_of(Op::matmul), Agreement::scaled);
  EXPECT_EQ(agreement_of(Op::sum), Agreement::scaled);
  EXPECT_EQ(agreement_of(Op::log_softmax), Agreement::absolute);
  for (const Op op : {Op::floor, Op::sign, Op::where, Op::maximum, Op::minibatch, Op::record, Op::assign,
                      Op::broadcast_to, Op::max, Op::slice, Op::random_uniform, Op::random_normal})
    EXPECT_EQ(agreement_of(op), Agreement::exact) << name_of(op);
}

TEST(Compare, FloatsAgreeWithinTheirTolerance) {
  const TensorType scalar{DType::f32, {1}, 0};
  const auto agree = [&](float got, float expected, Agreement rule, float scale = 0) {
    const Floats a = {got}, b = {expected}, s = {scale};
    return Sides{scalar, bytes_of(a), bytes_of(b), rule, bytes_of(s)}.agrees(0);
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(agree(1.000009f, 1, Agreement::relative));
  EXPECT_FALSE(agree(1.000011f, 1, Agreement::relative));
  EXPECT_FALSE(agree(1e-20f, 1.1e-20f, Agreement::relative));
  EXPECT_TRUE(agree(0, 1e-39f, Agreement::relative));  // subnormal, flushed
  EXPECT_FALSE(agree(0, 1e-37f, Agreement::relative));
  EXPECT_TRUE(agree(1e-4f, 0, Agreement::scaled, 100));  // what is left of terms that cancel
  EXPECT_FALSE(agree(1e-2f, 0, Agreement::scaled, 100));
  EXPECT_TRUE(agree(0, -2e-9f, Agreement::absolute));
  EXPECT_FALSE(agree(0, -2e-4f, Agreement::absolute));
  EXPECT_FALSE(agree(1.0000001f, 1, Agreement::exact));
  EXPECT_TRUE(agree(-0.0f, 0, Agreement::exact));
  for (const Agreement rule : {Agreement::exact, Agreement::relative, Agreement::absolute, Agreement::scaled}) {
    EXPECT_TRUE(agree(kNan, kNan, rule, inf));
    EXPECT_FALSE(agree(kNan, 1, rule, inf));
    EXPECT_FALSE(agree(1, kNan, rule, kNan));
    EXPECT_TRUE(agree(inf, inf, rule, inf));
    EXPECT_FALSE(agree(inf, -inf, rule, inf));
    EXPECT_FALSE(agree(3e38f, inf, rule, inf));
    EXPECT_FALSE(agree(inf, 3e38f, rule, inf));
  }
}

TEST(Compare, TheNeighbourhoodIsAMatrix) {
  std::vector<std::int32_t> got(24), expected(24);
  for (int i = 0; i < 24; ++i) got[static_cast<std::size_t>(i)] = expected[static_cast<std::size_t>(i)] = i;
  got[17] = -1;
  got[18] = -2;
  const Sides sides{{DType::i32, {2, 4, 3}, 0}, bytes_of(got), bytes_of(expected)};
  EXPECT_EQ(index_of(sides.type.shape, 17), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(neighbourhood(sides, 17, "cpu", "ref"),
            "          cpu             |  ref\n"
            "            0    1    2   |    0    1    2\n"
            "       0   12   13   14   |   12   13   14\n"
            "       1   15   16  [-1]  |   15   16  [17]\n"
            "       2   -2*  19   20   |   18*  19   20\n"
            "       3   21   22   23   |   21   22   23\n");
}

// ---- one value

TEST(VerifyCompare, TheFirstWrongElementOfManyIsFound) {
  constexpr std::size_t kMany = 3 * kPartElements + 5;  // ranges that several threads look at
  std::vector<float> got(kMany, 1), expected(kMany, 1);
  const auto sides = [&] {
    return Sides{{DType::f32, {static_cast<std::int64_t>(kMany)}, 0},
                 std::as_bytes(std::span(got)),
                 std::as_bytes(std::span(expected)),
                 Agreement::relative};
  };
  EXPECT_FALSE(compare(sides()).wrong);
  EXPECT_EQ(compare(sides()).worst, 0);
  got[2 * kPartElements] = 1 + 0x1p-18f;
  EXPECT_FALSE(compare(sides()).wrong);
  EXPECT_EQ(compare(sides()).worst, sides().ratio(2 * kPartElements));
  for (const std::size_t wrong : {kMany - 1, 2 * kPartElements + 7, kPartElements - 1, std::size_t{0}}) {
    got[wrong] = static_cast<float>(2 + wrong % 3);
    EXPECT_EQ(compare(sides()).wrong, wrong);
    EXPECT_EQ(compare(sides()).worst, sides().ratio(wrong)) << "later ones do not count";
  }
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

TEST(ValueAfter, StatesAreWhatTrainingLeaves) {
  Model model = verified_model();
  model.train.epochs = 2;
  Session session(verified_model());
  ValueOptions options;
  const HostTensor start = value_after(model, "W", options);
  EXPECT_TRUE(same_bytes(start, session.read("W")));
  Session trained(std::move(model));
  trained.train();
  options.steps = 6;
  EXPECT_TRUE(same_bytes(value_after(verified_model(), "W", options), trained.read("W")));
  EXPECT_EQ(value_after(verified_model(), "train/step:counter", options).elements<std::uint64_t>()[0], 6u);
}

TEST(ValueAfter, OtherValuesAreThoseOfTheNextStep) {
  const Model model = verified_model();
  ValueOptions options;
  options.steps = 2;  // the third batch has one row: the last of the split
  const HostTensor x = value_after(model, "x", options);
  const std::span<const float> all = model.data.splits[0].columns[0].second.elements<float>();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(x.elements<float>()[i], i < 4 ? all[24 + i] : 0.0f) << i;
  const HostTensor a = value_after(model, "a", options), h = value_after(model, "train/h", options);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(h.elements<float>()[i], std::tanh(a.elements<float>()[i]), 1e-6);
  const HostTensor evaluated = value_after(model, "evaluate.test/x");
  EXPECT_EQ(evaluated.elements<float>()[0], model.data.splits[1].columns[0].second.elements<float>()[0]);
}

TEST(ValueAfter, AWrongNameIsAnsweredWithTheNearest) {
  const auto code = [](std::string_view name) {
    try {
      value_after(verified_model(), name);
      return std::string("none");
    } catch (const Error& error) {
      return error.diagnostics()[0].code + " " + error.diagnostics()[0].hint;
    }
  };
  EXPECT_EQ(code("train/leakx"), "value.unknown did you mean 'train/leaky'?");
  EXPECT_EQ(code("predict/h").substr(0, 13), "value.predict");
}

}  // namespace
}  // namespace graphrun
