// Recurrent layers: values and gradients next to torch's as recorded (tests/reference/recurrent_torch.py), all
// executors, accumulators and errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "graphrun/model.h"
#include "graphrun/program.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "graphrun/verify.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using Numbers = std::vector<double>;

// recurrent_torch.py has the same pattern.
HostTensor patterned(const Shape& shape, std::int64_t a, std::int64_t modulus, double divisor) {
  Numbers values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((a * i) % modulus - modulus / 2) / divisor);
  return test::tensor_of(DType::f32, shape, values);
}

Session session_on(Model model, const std::string& executor) {
  SessionOptions options;
  options.executor = executor;
  return Session(std::move(model), options);
}

void expect_equal(const Numbers& got, const json::Value& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.items.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted.items[i].real, 1e-6) << what << "[" << i << "]";
}

class RecurrentOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Recurrent, RecurrentOn, testing::Values("ref", "cpu"),
                         [](const auto& run) { return run.param; });

TEST_P(RecurrentOn, ValuesAndGradientsEqualThoseOfTorch) {
  const std::string file = source_folder() + "/tests/reference/recurrent.json";
  const json::Document recorded = json::parse(file, read_file(file));
  const std::vector<json::Value>& cases = recorded.root.find("cases")->value.items;
  ASSERT_EQ(cases.size(), 27u);
  for (const json::Value& one : cases) {
    const auto integer = [&](const char* key) { return one.find(key)->value.integer; };
    const std::string kind = one.find("layer")->value.string, result = one.find("return")->value.string;
    const bool reverse = one.find("reverse")->value.boolean;
    const std::int64_t batch = integer("batch"), steps = integer("steps"), features = integer("features"),
                       units = integer("units"),
                       columns = units * (kind == "rnn"   ? 1
                                          : kind == "gru" ? 3
                                                          : 4);
    GraphBuilder g(batch);
    const Value x = g.input("x", {kBatch, steps, features});
    const Value h = g.layer(kind, "h", {x + g.parameter("shift", {steps, features})},
                            {{"units", units}, {"return", result}, {"reverse", reverse}});
    Model model(std::move(g));
    model.train.minimize = model.graph.expression("loss = mean(square(h))");
    model.train.optimizer.attributes = {{"lr", 1.0}};
    model.outputs = {{h, "h", ""}};
    const HostTensor data = patterned({batch, steps, features}, 7, 19, 8);
    model.data.splits = {{"train", {{"x", data}}}};

    Session session = session_on(std::move(model), GetParam());
    std::vector<std::pair<std::string, HostTensor>> start = {{"shift", patterned({steps, features}, 0, 1, 1)},
                                                             {"h.W", patterned({features, columns}, 5, 17, 16)},
                                                             {"h.b", patterned({columns}, 3, 7, 32)}};
    // One time step starts from zeros and does not read R, which the model then omits.
    if (steps > 1) start.emplace_back("h.R", patterned({units, columns}, 3, 13, 16));
    if (kind == "gru") start.emplace_back("h.c", patterned({units}, 2, 5, 16));
    for (const auto& [name, value] : start) session.write(name, value);
    const std::string what = fmt::format("{} of {} time steps, {} to {} features, {} {} {}", kind, steps, features,
                                         units, batch, result, reverse ? "reverse" : "forward");
    const json::Value& results = one.find("results")->value;
    expect_equal(test::to_doubles(session.predict({{"x", data}})), results.find("y")->value, what + ": h");
    session.train();
    for (const auto& [name, before] : start) {
      Numbers gradient = test::to_doubles(before);
      const Numbers after = test::to_doubles(session.read(name));
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
      const std::string key = name.substr(name.find('.') + 1);
      expect_equal(gradient, results.find(key)->value, what + ": gradient of " + name);
    }
  }
}

// Two layers over a sequence, one that reads it backwards and one that shares its parameters.
const char* const kRecurrentModel = R"json({
  "format": 1,
  "data": {"train": {"grid": {"u": [-3, 3, 50]}, "x": ["sin(u)", "sin(u + 0.3)", "sin(u + 0.6)", "sin(u + 0.9)",
           "sin(u + 1.2)", "cos(u)", "cos(u + 0.3)", "cos(u + 0.6)", "cos(u + 0.9)", "cos(u + 1.2)"], "y": "sin(u + 1.5)"}},
  "inputs": {"x": ["batch", 10], "y": ["batch", 1]},
  "graph": ["s = transpose(reshape(x, shape=[-1, 2, 5]), axes=[0, 2, 1])", "a = lstm(s, units=5, return=sequence)",
            "b = gru(a, units=4, reverse=true, return=sequence)", "c = gru(a * 0.5, share=b)",
            {"name": "d", "op": "rnn", "inputs": ["b"], "units": 3, "bias": false, "recurrent": {"normal": 0.2}},
            "f = gru(b, units=3, bias=false, recurrent_bias=false)",
            "y_hat = dense(concat(reshape(c, shape=[-1, 20]), d, f, axis=1), units=1)", "loss = mse(y_hat, y)"],
  "outputs": {"y_hat": "y"},
  "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 16, "shuffle": true, "epochs": 60, "seed": 3}
})json";

TEST(Recurrent, LayersAgreeOnAllExecutorsAndLearn) {
  const std::string file = test::write_model(kRecurrentModel);
  const VerifyReport report = verify(load_model(file));
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  Session session(load_model(file));
  session.train();
  EXPECT_LT(session.evaluate("train").loss, 0.02);
  const std::string canonical = canonical_model(file);
  EXPECT_EQ(canonical_model(test::write_model(canonical)), canonical);
}

// The bytes of partial results in a layer over `steps` time steps.
std::uint64_t accumulator_bytes(const char* layer, std::int64_t steps) {
  GraphBuilder g(64);
  const Value x = g.input("x", {kBatch, steps, 1});
  g.name(g.layer(layer, "h", {x}, {{"units", std::int64_t{16}}}), "y");
  Model model(std::move(g));
  model.train.minimize = model.graph.expression("loss = mean(square(y))");
  model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {64, steps, 1})}}}};
  const Session session = session_on(std::move(model), "cpu");
  const Program& program = session.program();
  const Phase& phase = program.phases[find_phase(program, "train")];
  EXPECT_EQ(phase.regions.size(), 1u);
  return std::get<HostTiling>(phase.regions.at(0).tiling).accumulator_bytes;
}

TEST(Recurrent, PartialResultsDoNotGrowWithTheNumberOfTimeSteps) {
  for (const char* layer : {"rnn", "gru", "lstm"})
    EXPECT_EQ(accumulator_bytes(layer, 8), accumulator_bytes(layer, 32)) << layer;
}

TEST(Recurrent, ErrorsAreReported) {
  const auto told = [](const std::string& input, const std::string& layer, const AttrList& attributes) -> std::string {
    GraphBuilder g(2);
    g.input("x", {kBatch, 65, 2});
    g.input("flat", {kBatch, 3});
    g.input("n", {kBatch, 3, 2}, DType::i32);
    g.input("empty", {kBatch, 0, 2});
    g.input("last", {kBatch, 64, 2});
    g.layer("lstm", "other", {g.find("last")}, {{"units", std::int64_t{2}}});
    try {
      g.layer(layer, "h", {g.find(input)}, attributes);
    } catch (const Error& error) {
      return error.diagnostics().front().message + "|" + error.diagnostics().front().hint;
    }
    return "none";
  };
  const AttrList two = {{"units", std::int64_t{2}}};
  EXPECT_EQ(told("last", "rnn", two), "none");
  EXPECT_EQ(told("x", "lstm", two),
            "h: lstm unrolls at most 64 time steps, x f32(batch, 65, 2) has 65|slice(x, axis=1, start=-64) keeps the "
            "last 64; a mean of neighbouring time steps shortens the sequence");
  const std::string hint = "|reshape(x, shape=[-1, T, f]) makes T time steps of f features";
  EXPECT_EQ(told("flat", "gru", two),
            "h: gru needs x of shape (batch, time steps, features) in f32, got flat f32(batch, 3)" + hint);
  EXPECT_EQ(told("n", "rnn", two),
            "h: rnn needs x of shape (batch, time steps, features) in f32, got n i32(batch, 3, 2)" + hint);
  EXPECT_EQ(told("empty", "rnn", two),
            "h: rnn needs x of shape (batch, time steps, features) in f32, got empty f32(batch, 0, 2)" + hint);
  EXPECT_NE(told("last", "rnn", {{"units", std::int64_t{0}}}), "none");
  EXPECT_NE(told("last", "lstm", {{"units", std::int64_t{1} << 62}}), "none");
  EXPECT_NE(told("last", "rnn", {{"units", std::int64_t{2}}, {"return", std::string("all")}}), "none");
  EXPECT_NE(told("last", "gru", {{"share", std::string("other")}}), "none");
  EXPECT_EQ(told("last", "lstm", {{"share", std::string("other")}}), "none");
}

}  // namespace
}  // namespace graphrun
