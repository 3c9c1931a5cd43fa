// The C interface as a C program sees it: what it gives, what it refuses, and that it allocates nothing in a step.
#include "graphrun/c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/allocations.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

constexpr const char* kPlane = R"JSON({
  "format": 1, "name": "plane",
  "data": {"train": {"inline": {"x": [[0, 0], [0, 1], [1, 0], [1, 1]], "y": [0.5, -2.5, 2.5, -0.5]}}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "parameters": {"W": {"shape": [2, 1], "init": "zeros"}, "b": {"shape": [1], "init": "zeros"}},
  "graph": ["p = x @ W + b", "loss = mean(square(p - y))"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["mse"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 200, "seed": 1}
})JSON";

struct Free {
  void operator()(gr_error* error) const { gr_error_free(error); }
  void operator()(gr_model* model) const { gr_model_free(model); }
  void operator()(gr_session* session) const { gr_session_free(session); }
  void operator()(char* text) const { gr_text_free(text); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

void good(gr_error* error) {
  const Owned<gr_error> owned(error);
  ASSERT_EQ(error, nullptr) << gr_error_message(error);
}
// The message of an error of that kind, whose JSON has `code`.
std::string bad(gr_error* error, gr_kind kind, const std::string& code) {
  const Owned<gr_error> owned(error);
  if (error == nullptr) {
    ADD_FAILURE() << "no error; expected " << code;
    return {};
  }
  EXPECT_EQ(gr_error_kind(error), kind) << gr_error_message(error);
  EXPECT_NE(std::string(gr_error_json(error)).find("\"code\": \"" + code + "\""), std::string::npos)
      << gr_error_json(error);
  return gr_error_message(error);
}

Owned<gr_model> parsed(const char* json = kPlane, const char* options = nullptr) {
  gr_model* model = nullptr;
  good(gr_model_parse(json, options, &model));
  return Owned<gr_model>(model);
}
Owned<gr_session> opened(const char* options = nullptr) {
  const Owned<gr_model> model = parsed();
  gr_session* session = nullptr;
  good(gr_session_open(model.get(), options, &session));
  return Owned<gr_session>(session);
}
std::string text_of(gr_error* error, char* text) {
  good(error);
  const Owned<char> owned(text);
  return text == nullptr ? "" : text;
}
gr_value found(gr_session* session, const char* name) {
  gr_value value = 0;
  good(gr_session_find(session, name, &value));
  return value;
}

TEST(CApi, TrainsEvaluatesPredicts) {
  const Owned<gr_session> session = opened();
  struct Seen {
    int reports = 0;
    double loss = 0;
  } seen;
  gr_train_options options{};
  options.struct_size = sizeof options;
  options.user = &seen;
  options.on_report = [](void* user, const gr_report* report) {
    auto& to = *static_cast<Seen*>(user);
    ++to.reports;
    to.loss = report->loss;
    EXPECT_EQ(report->struct_size, sizeof *report);
    EXPECT_TRUE(std::isnan(report->validation_loss));
    return 0;
  };
  gr_train_result result{};
  result.struct_size = sizeof result;
  good(gr_session_train(session.get(), &options, &result));
  EXPECT_EQ(result.epochs, 200);
  EXPECT_EQ(result.steps, 200U);
  EXPECT_EQ(result.cancelled, 0);
  EXPECT_EQ(seen.reports, 200);
  EXPECT_LT(seen.loss, 1e-4);
  EXPECT_EQ(gr_session_step(session.get()), 200U);
  double loss = 1;
  good(gr_session_loss(session.get(), &loss));
  EXPECT_EQ(loss, seen.loss);

  char* json = nullptr;
  gr_error* error = gr_session_evaluate(session.get(), "train", &json);
  EXPECT_EQ(text_of(error, json).rfind("{\"loss\": ", 0), 0U);

  const std::array<float, 6> x = {0, 0, 1, 0, 0, 1};
  std::array<float, 3> p{};
  const gr_const_bytes in{x.data(), sizeof x};
  const gr_bytes out{p.data(), sizeof p};
  good(gr_session_predict(session.get(), &in, 1, &out, 1));
  EXPECT_NEAR(p[0], 0.5, 0.05);
  EXPECT_NEAR(p[1], 2.5, 0.05);
  EXPECT_NEAR(p[2], -2.5, 0.05);

  error = gr_session_describe(session.get(), &json);
  const std::string described = text_of(error, json);
  EXPECT_NE(described.find("\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [4, 2]}]"), std::string::npos)
      << described;
}

TEST(CApi, AReportHasTheLossOfEachObjective) {
  constexpr const char* kTwo =
      R"json({"format": 1, "data": {"train": {"inline": {"x": [1, 3]}}}, "inputs": {"x": ["batch"]},
    "parameters": {"a": {"shape": [], "init": 2}, "b": {"shape": [], "init": 5}},
    "graph": ["first = mean(x * a)", "second = mean(x * b)", "out = x * a"], "outputs": ["out"],
    "train": {"batch": 1, "objectives": {
      "one": {"minimize": "first", "parameters": ["a"], "optimizer": {"sgd": {"lr": 1}}},
      "two": {"minimize": "second", "parameters": ["b"], "optimizer": {"sgd": {"lr": 1}}, "every": 2}}}})json";
  const Owned<gr_model> model = parsed(kTwo);
  gr_session* both = nullptr;
  good(gr_session_open(model.get(), nullptr, &both));
  const Owned<gr_session> session(both);
  gr_train_options options{};
  options.struct_size = sizeof options;
  std::vector<double> seen;
  options.user = &seen;
  options.on_report = [](void* user, const gr_report* report) {
    static_cast<std::vector<double>*>(user)->assign(report->objectives, report->objectives + report->objective_count);
    return 0;
  };
  char* json = nullptr;
  gr_error* error = gr_session_describe(both, &json);
  const std::string before = text_of(error, json);
  EXPECT_NE(before.find("\"objectives\": [\"one\", \"two\"], \"counters\": {\"allocations\": "), std::string::npos)
      << before;
  good(gr_session_train(both, &options, nullptr));
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_NEAR(seen[0], (1 * 2 + 3 * (2 - 1)) / 2.0, 1e-6) << "the mean of both steps";
  EXPECT_NEAR(seen[1], (1 * 5 + 3 * 5) / 2.0, 1e-6) << "which moves in the second step only";
  error = gr_session_describe(both, &json);
  const std::string after = text_of(error, json);
  const auto allocations = [](const std::string& text) { return text.substr(text.find("\"allocations\""), 40); };
  EXPECT_EQ(allocations(after), allocations(before)) << "a step allocates nothing";
}

TEST(CApi, ACallbackEndsTheTraining) {
  const Owned<gr_session> session = opened();
  gr_train_options options{};
  options.struct_size = sizeof options;
  options.on_report = [](void*, const gr_report* report) { return report->epoch >= 5 ? 1 : 0; };
  gr_train_result result{};
  result.struct_size = sizeof result;
  good(gr_session_train(session.get(), &options, &result));
  EXPECT_EQ(result.cancelled, 1);
  EXPECT_LT(result.steps, 200U);
}

Owned<gr_session> opened_with(const std::string& options) {
  const Owned<gr_model> model = parsed(kPlane, options.c_str());
  gr_session* session = nullptr;
  good(gr_session_open(model.get(), R"({"threads": 1})", &session));
  return Owned<gr_session>(session);
}
std::string hash_of(gr_session* session) {
  std::array<char, 17> hash{};
  good(gr_session_weights_hash(session, hash.data()));
  return hash.data();
}

// Network 2 diverges, and a callback ends network 3.
TEST(CApi, TrainsManyAsEachAlone) {
  std::vector<Owned<gr_session>> owned;
  std::vector<gr_session*> sessions;
  std::vector<std::string> alone;
  const auto ends = [](void*, const gr_report* report) { return report->epoch == 5 ? 1 : 0; };
  for (int i = 0; i < 6; ++i) {
    const std::string lr = i == 2 ? "1e30" : "0.0" + std::to_string(i + 1);
    const std::string set = R"({"set": {"train.log_every": 1, "train.optimizer": {"sgd": {"lr": )" + lr + "}}}}";
    owned.push_back(opened_with(set));
    sessions.push_back(owned.back().get());
    const Owned<gr_session> one = opened_with(set);
    gr_train_options options{sizeof options, ends, nullptr};
    gr_error* error = gr_session_train(one.get(), i == 3 ? &options : nullptr, nullptr);
    i == 2 ? (void)bad(error, GR_RUN, "run.not_finite") : good(error);
    alone.push_back(hash_of(one.get()));
  }
  std::array<int, 6> reports{};
  gr_train_many_options options{};
  options.struct_size = sizeof options;
  options.at_once = 3;
  options.user = &reports;
  options.on_report = [](void* user, size_t network, const gr_report* report) {
    ++(*static_cast<std::array<int, 6>*>(user))[network];
    return network == 3 && report->epoch == 5 ? 1 : 0;
  };
  std::array<gr_train_result, 6> results{};
  results[0].struct_size = sizeof results[0];
  std::array<gr_error*, 6> errors{};
  good(gr_train_many(sessions.data(), 6, &options, results.data(), errors.data()));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(hash_of(sessions[i]), alone[i]) << i;
    if (i == 2)
      bad(errors[i], GR_RUN, "run.not_finite");
    else
      good(errors[i]);
    if (i == 2) continue;
    EXPECT_EQ(results[i].struct_size, sizeof results[i]);
    EXPECT_EQ(results[i].epochs, i == 3 ? 5 : 200) << i;
    EXPECT_EQ(results[i].cancelled, i == 3 ? 1 : 0) << i;
    EXPECT_EQ(reports[i], i == 3 ? 5 : 200) << i;
  }
}

TEST(CApi, ManyTrainingsEndTogetherOrAreRejected) {
  const std::vector<Owned<gr_session>> owned = [] {
    std::vector<Owned<gr_session>> made;
    for (int i = 0; i < 3; ++i) made.push_back(opened());
    return made;
  }();
  std::vector<gr_session*> sessions = {owned[0].get(), owned[1].get(), owned[2].get()};
  std::array<gr_error*, 3> errors{};
  gr_train_result result{};
  bad(gr_train_many(nullptr, 3, nullptr, nullptr, errors.data()), GR_INPUT, "c.null");
  bad(gr_train_many(sessions.data(), 3, nullptr, nullptr, nullptr), GR_INPUT, "c.null");
  bad(gr_train_many(sessions.data(), 3, nullptr, &result, errors.data()), GR_INPUT, "c.struct_size");
  std::vector<gr_session*> invalid = {sessions[0], nullptr};
  bad(gr_train_many(invalid.data(), 2, nullptr, nullptr, errors.data()), GR_INPUT, "c.null");
  invalid[1] = sessions[0];
  bad(gr_train_many(invalid.data(), 2, nullptr, nullptr, errors.data()), GR_INPUT, "train_many.session");
  EXPECT_EQ(gr_session_step(sessions[0]), 0U);
  good(gr_train_many(nullptr, 0, nullptr, nullptr, nullptr));

  gr_train_many_options options{};
  options.struct_size = sizeof options;
  options.at_once = 1;
  options.on_report = [](void*, size_t, const gr_report*) { return -1; };
  std::array<gr_train_result, 3> results{};
  results[0].struct_size = sizeof result;
  good(gr_train_many(sessions.data(), 3, &options, results.data(), errors.data()));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i].cancelled, 1) << i;
  EXPECT_EQ(gr_session_step(sessions[2]), 0U);
}

TEST(CApi, StatesByNumberAllocateNothing) {
  const Owned<gr_session> session = opened();
  const gr_value w = found(session.get(), "W"), x = found(session.get(), "data/train/x");
  gr_type type{};
  good(gr_session_type(session.get(), x, &type));
  EXPECT_EQ(type.dtype, GR_F32);
  EXPECT_EQ(type.rank, 2);
  EXPECT_EQ(type.shape[0], 4);
  const std::array<float, 2> weights = {3, -4};
  const std::array<float, 4> rows = {5, 6, 7, 8};
  std::array<float, 2> read{};
  std::array<float, 8> all{};
  std::array<float, 6> p{};
  const std::array<float, 12> px = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // more than a batch
  const gr_const_bytes in{px.data(), sizeof px};
  const gr_bytes out{p.data(), sizeof p};
  good(gr_session_predict(session.get(), &in, 1, &out, 1));  // makes its room
  good(gr_session_advance(session.get(), 1));
  const std::uint64_t before = test::allocations();
  double loss = 0;
  for (int i = 0; i < 3; ++i) {
    good(gr_session_write(session.get(), w, weights.data(), sizeof weights));
    good(gr_session_read(session.get(), w, read.data(), sizeof read));
    good(gr_session_write_rows(session.get(), x, 1, rows.data(), sizeof rows));
    good(gr_session_read(session.get(), x, all.data(), sizeof all));
    good(gr_session_predict(session.get(), &in, 1, &out, 1));
    good(gr_session_advance(session.get(), 2));
    good(gr_session_loss(session.get(), &loss));
  }
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_EQ(read, weights);
  EXPECT_EQ(all, (std::array<float, 8>{0, 0, 5, 6, 7, 8, 1, 1}));
  std::array<float, 1> b{};
  good(gr_session_read(session.get(), found(session.get(), "b"), b.data(), sizeof b));
  EXPECT_EQ(b[0], b[0]);
}

TEST(CApi, RowsOfASplitAreTrainedWith) {
  // A session whose rows were written trains as one whose model had them.
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const Owned<gr_session> written = opened();
  const gr_value to = found(written.get(), "data/train/x");
  for (int row = 0; row < 4; ++row)
    good(gr_session_write_rows(written.get(), to, row, x.data() + 2 * row, 2 * sizeof(float)));
  const Owned<gr_model> model = parsed();
  gr_type type{GR_F32, 2, {4, 2}};
  good(gr_model_set_data(model.get(), "train", "x", &type, x.data()));
  gr_session* session = nullptr;
  good(gr_session_open(model.get(), nullptr, &session));
  const Owned<gr_session> given(session);
  std::array<char, 17> one{}, other{};
  for (const auto& [of, hash] : {std::pair{written.get(), &one}, std::pair{given.get(), &other}}) {
    good(gr_session_advance(of, 3));
    good(gr_session_weights_hash(of, hash->data()));
  }
  EXPECT_STREQ(one.data(), other.data());
  EXPECT_EQ(std::strlen(one.data()), 16U);
}

TEST(CApi, WeightsGoThroughFiles) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("w.safetensors");
  const Owned<gr_session> session = opened();
  good(gr_session_advance(session.get(), 10));
  good(gr_session_save_weights(session.get(), path.c_str()));
  const Owned<gr_session> fresh = opened();
  good(gr_session_load_weights(fresh.get(), path.c_str()));
  std::array<char, 17> one{}, other{};
  good(gr_session_weights_hash(session.get(), one.data()));
  good(gr_session_weights_hash(fresh.get(), other.data()));
  EXPECT_STREQ(one.data(), other.data());
  EXPECT_NE(bad(gr_session_load_weights(fresh.get(), "/nowhere/w.npz"), GR_INPUT, "file.read").find("/nowhere/w.npz"),
            std::string::npos);
}

TEST(CApi, OptionsReachTheModelAndTheSession) {
  const Owned<gr_model> model = parsed(kPlane, R"({"set": {"train.epochs": 3, "train.optimizer": "adam"}})");
  gr_session* session = nullptr;
  good(gr_session_open(model.get(), R"({"executor": "ref", "threads": 1})", &session));
  const Owned<gr_session> owned(session);
  gr_train_result result{};
  result.struct_size = sizeof result;
  good(gr_session_train(session, nullptr, &result));
  EXPECT_EQ(result.epochs, 3);
  char* json = nullptr;
  gr_error* error = gr_session_describe(session, &json);
  const std::string text = text_of(error, json);
  EXPECT_NE(text.find("\"executor\": \"ref\""), std::string::npos);
  EXPECT_NE(text.find("\"W:m\""), std::string::npos) << "no moments: " << text;
}

TEST(CApi, VerifyDevicesHelp) {
  const Owned<gr_model> model = parsed();
  char* text = nullptr;
  gr_error* error = gr_verify(model.get(), nullptr, &text);
  EXPECT_EQ(text_of(error, text).rfind("{\"passed\": true, \"executor\": \"cpu\", \"against\": \"ref\"", 0), 0U);
  error = gr_devices(&text);
  EXPECT_NE(text_of(error, text).find("\"id\": \"cpu\""), std::string::npos);
  error = gr_help("adam", &text);
  EXPECT_NE(text_of(error, text).find("lr"), std::string::npos);
  EXPECT_NE(bad(gr_help("adamm", &text), GR_INPUT, "help.unknown").find("adam"), std::string::npos);
  EXPECT_GE(gr_abi_version(), 1U);
}

TEST(CApi, ErrorsAreErrors) {
  gr_model* model = nullptr;
  const std::string syntax = bad(gr_model_parse("{\"format\": 1,", nullptr, &model), GR_INPUT, "json.syntax");
  EXPECT_EQ(syntax.rfind("<text>:1:", 0), 0U) << syntax;
  EXPECT_EQ(model, nullptr);
  bad(gr_model_parse(kPlane, "[]", &model), GR_INPUT, "model.type");
  EXPECT_NE(bad(gr_model_parse(kPlane, R"({"sett": {}})", &model), GR_INPUT, "model.unknown_key").find("set"),
            std::string::npos);
  EXPECT_NE(bad(gr_model_parse(kPlane, R"({"data": "value"})", &model), GR_INPUT, "options.value").find("values"),
            std::string::npos);
  bad(gr_model_load(nullptr, nullptr, &model), GR_INPUT, "c.null");
  bad(gr_model_parse(kPlane, nullptr, nullptr), GR_INPUT, "c.null");

  const Owned<gr_model> once = parsed();
  gr_session* session = nullptr;
  bad(gr_session_open(once.get(), R"({"executor": "gpu"})", &session), GR_INPUT, "executor.unknown");
  bad(gr_session_open(once.get(), nullptr, &session), GR_INPUT, "c.taken");
  bad(gr_session_open(nullptr, nullptr, &session), GR_INPUT, "c.null");
  EXPECT_EQ(session, nullptr);

  const Owned<gr_session> good_one = opened();
  session = good_one.get();
  gr_value value = 7;
  EXPECT_NE(bad(gr_session_find(session, "w", &value), GR_INPUT, "state.unknown").find("W"), std::string::npos);
  EXPECT_EQ(value, 7U);
  std::array<float, 4> room{};
  const gr_value w = found(session, "W"), x = found(session, "data/train/x");
  bad(gr_session_read(session, w, room.data(), sizeof room), GR_INPUT, "state.shape");
  bad(gr_session_read(session, w, nullptr, 8), GR_INPUT, "c.null");
  bad(gr_session_read(session, 999, room.data(), 8), GR_INPUT, "state.unknown");
  bad(gr_session_write_rows(session, x, 3, room.data(), 16), GR_INPUT, "state.rows");
  bad(gr_session_write_rows(session, x, -1, room.data(), 8), GR_INPUT, "state.rows");
  bad(gr_session_write_rows(session, x, 0, room.data(), 7), GR_INPUT, "state.rows");
  char* json = nullptr;
  bad(gr_session_evaluate(session, "tets", &json), GR_INPUT, "split.unknown");
  gr_train_result result{};
  bad(gr_session_train(session, nullptr, &result), GR_INPUT, "c.struct_size");

  const gr_const_bytes in{room.data(), 12};  // one and a half rows
  const gr_bytes out{room.data(), 4};
  bad(gr_session_predict(session, &in, 1, &out, 1), GR_INPUT, "predict.shape");
  const gr_const_bytes two{room.data(), 16};
  bad(gr_session_predict(session, &two, 1, &out, 1), GR_INPUT, "predict.output");
  bad(gr_session_predict(session, &two, 0, &out, 1), GR_INPUT, "predict.count");
  gr_error_free(nullptr);
  gr_model_free(nullptr);
  gr_session_free(nullptr);
  gr_text_free(nullptr);
  gr_session_cancel(nullptr);
  EXPECT_EQ(gr_session_step(nullptr), 0U);
}

TEST(CApi, SplitsThatDoNotMatchAreRejected) {
  const Owned<gr_model> model = parsed();
  const std::array<float, 5> y{};
  gr_type type{GR_F32, 2, {5, 1}};
  good(gr_model_set_data(model.get(), "train", "y", &type, y.data()));
  gr_session* session = nullptr;
  gr_error* error = gr_session_open(model.get(), nullptr, &session);
  ASSERT_NE(error, nullptr);
  const Owned<gr_error> owned(error);
  EXPECT_EQ(gr_error_kind(error), GR_INPUT);
  type.rank = 9;
  bad(gr_model_set_data(parsed().get(), "train", "y", &type, y.data()), GR_INPUT, "c.rank");
  type.rank = 2;
  EXPECT_NE(bad(gr_model_set_data(parsed().get(), "train", "Y", &type, y.data()), GR_INPUT, "name.unknown").find("'y'"),
            std::string::npos)
      << "a column of no input";
}

TEST(CApi, ACallbackDoesNotTrain) {
  const Owned<gr_session> session = opened();
  struct Calls {
    gr_session* session;
    int made = 0;
  } calls{session.get()};
  gr_train_options options{sizeof options,
                           [](void* user, const gr_report*) {
                             auto& seen = *static_cast<Calls*>(user);
                             bad(gr_session_train(seen.session, nullptr, nullptr), GR_INPUT, "session.busy");
                             bad(gr_session_advance(seen.session, 1), GR_INPUT, "session.busy");
                             bad(gr_session_advance_until(seen.session, 1, 1, nullptr), GR_INPUT, "session.busy");
                             std::array<char, 1> state{};
                             bad(gr_session_save_state(seen.session, state.data(), 1), GR_INPUT, "session.busy");
                             return ++seen.made == 2 ? 1 : 0;
                           },
                           &calls};
  good(gr_session_train(session.get(), &options, nullptr));
  EXPECT_EQ(calls.made, 2);
  good(gr_session_advance(session.get(), 1));
}

// The batch is "all": of the rows that are given, not of the model's own.
TEST(CApi, RowsInPlaceOfTheModelsOwnAreItsBatch) {
  const Owned<gr_model> model = parsed(kPlane, R"({"data": "none"})");
  const std::array<float, 20> values{};
  const gr_type x{GR_F32, 2, {10, 2}}, y{GR_F32, 2, {10, 1}};
  good(gr_model_set_data(model.get(), "train", "x", &x, values.data()));
  good(gr_model_set_data(model.get(), "train", "y", &y, values.data()));
  gr_session* session = nullptr;
  good(gr_session_open(model.get(), nullptr, &session));
  const Owned<gr_session> owned(session);
  char* json = nullptr;
  good(gr_session_describe(session, &json));
  const std::string text = text_of(nullptr, json);
  EXPECT_NE(text.find(R"("inputs": [{"name": "x", "dtype": "f32", "shape": [10, 2]}])"), std::string::npos) << text;
  good(gr_session_train(session, nullptr, nullptr));
  EXPECT_EQ(gr_session_step(session), 200U);
  parsed(kPlane, R"({"data": "none", "set": {"train.batch": 8}})");  // of more rows than its own
}

// An NPY file of bytes is stored in a byte per element; a program reads and writes f32.
TEST(CApi, ImagesInBytesAreWrittenAsF32) {
  const test::TemporaryFolder folder;
  std::string file = "\x93NUMPY";
  file += {1, 0, 118, 0};
  file += "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 64), }";
  file += std::string(128 - 1 - file.size(), ' ') + '\n';
  for (int i = 0; i < 128; ++i) file += static_cast<char>(2 * i);
  folder.write("x.npy", file);
  const std::string x_file = folder.file("x.npy");
  const std::string json = R"JSON({"format": 1, "data": {"train": {"npy": {"x": ")JSON" + x_file +
                           R"JSON(", "y": ")JSON" + x_file + R"JSON("}}, "transform": {"x": [{"scale": 0.5}]}},
    "inputs": {"x": ["batch", 64], "y": ["batch", 64]}, "parameters": {"w": {"shape": [64], "init": "zeros"}},
    "graph": ["p = x * w", "loss = mse(p, y)"], "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 1, "epochs": 1}})JSON";
  const auto opened_with = [&](const char* options, const float* given) {
    const Owned<gr_model> model = parsed(json.c_str());
    const gr_type type{GR_F32, 2, {2, 64}};
    if (given != nullptr) good(gr_model_set_data(model.get(), "train", "x", &type, given));
    gr_session* session = nullptr;
    good(gr_session_open(model.get(), options, &session));
    return Owned<gr_session>(session);
  };
  const Owned<gr_session> session = opened_with(R"({"fuse": false})", nullptr);
  const gr_value x = found(session.get(), "data/train/x");
  gr_type type;
  good(gr_session_type(session.get(), x, &type));
  EXPECT_EQ(type.dtype, GR_F32);
  std::array<float, 128> values{}, again{};
  good(gr_session_read(session.get(), x, values.data(), sizeof values));
  for (int i = 0; i < 128; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i));
  std::reverse(values.begin(), values.end());
  good(gr_session_write(session.get(), x, values.data(), sizeof values));
  good(gr_session_write_rows(session.get(), x, 1, values.data(), sizeof values / 2));
  good(gr_session_read(session.get(), x, again.data(), sizeof again));
  EXPECT_TRUE(std::equal(values.begin(), values.begin() + 64, again.begin() + 64));
  values[3] = 0.25F;
  const std::string text =
      bad(gr_session_write(session.get(), x, values.data(), sizeof values), GR_INPUT, "state.code");
  EXPECT_NE(text.find("k / 2 with k from 0 to 255, and 0.25 is not"), std::string::npos) << text;
  const Owned<gr_session> any = opened_with(R"({"rows_vary": ["train"]})", nullptr);
  good(gr_session_write(any.get(), found(any.get(), "data/train/x"), values.data(), sizeof values));
  const Owned<gr_session> other = opened_with(nullptr, values.data());  // in place of the rows of the file
  good(gr_session_read(other.get(), found(other.get(), "data/train/x"), again.data(), sizeof again));
  EXPECT_EQ(again[3], 0.125F);  // scaled
}

TEST(CApi, AModelWithoutItsRowsPredicts) {
  gr_model* model = nullptr;
  good(gr_model_parse(kPlane, R"({"data": "none", "set": {"train.batch": 3}})", &model));
  const Owned<gr_model> owned(model);
  gr_session* session = nullptr;
  good(gr_session_open(model, nullptr, &session));
  const Owned<gr_session> opened_one(session);
  const std::array<float, 2> x{1, 2};
  float y = 0;
  const gr_const_bytes in{x.data(), sizeof x};
  const gr_bytes out{&y, sizeof y};
  good(gr_session_predict(session, &in, 1, &out, 1));
  bad(gr_session_train(session, nullptr, nullptr), GR_INPUT, "train.nothing");
}

TEST(CApi, EveryMistakeOfAFileIsReportedWithItsPlace) {
  std::string text = kPlane;
  const auto change = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  change("x @ W + b", "x @ V + b");
  change("\"lr\": 0.1", "\"lr\": -1");
  change("\"epochs\"", "\"epoch\"");
  gr_model* model = nullptr;
  const Owned<gr_error> error(gr_model_parse(text.c_str(), nullptr, &model));
  ASSERT_NE(error, nullptr);
  const std::string json = gr_error_json(error.get());
  for (const char* part : {"\"pointer\": \"/graph/0\"", "\"pointer\": \"/train/optimizer/sgd/lr\"", "epochs",
                           "\"file\": \"<text>\", \"line\": 6, \"column\": ", "\"line\": 8, \"column\": "})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
}

TEST(CApi, AModelIsDescribedBeforeItIsOpened) {
  const Owned<gr_model> model = parsed(kPlane, R"({"data": "none"})");
  char* json = nullptr;
  gr_error* error = gr_model_describe(model.get(), &json);
  EXPECT_EQ(text_of(error, json),
            R"({"name": "plane", "inputs": [{"name": "x", "dtype": "f32", "shape": [2], "target": false}, )"
            R"({"name": "y", "dtype": "f32", "shape": [1], "target": true}], "outputs": [{"name": "p", "target": "y", )"
            R"("classes": false, "scores": "plain", "labels": [], "multi_label": false}]})");
  bad(gr_model_describe(nullptr, &json), GR_INPUT, "c.null");
}

TEST(CApi, AFrameAllocatesNothing) {
  const Owned<gr_session> owned = opened(R"({"rows_vary": ["train"]})");
  gr_session* const session = owned.get();
  size_t bytes = 0;
  good(gr_session_state_bytes(session, &bytes));
  std::vector<char> state(bytes);
  good(gr_session_advance(session, 1));
  gr_advanced done{};
  done.struct_size = sizeof done;
  const std::uint64_t before = test::allocations();
  good(gr_session_set_rows(session, "train", 3));
  good(gr_session_advance_until(session, 4, 0, &done));
  good(gr_session_save_state(session, state.data(), bytes));
  good(gr_session_load_state(session, state.data(), bytes));
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_EQ(done.steps, 4U);
  EXPECT_EQ(done.finite, 1);
  EXPECT_GT(done.loss, 0);
  good(gr_session_advance_until(session, 1000, 1, &done));  // a moment long ago
  EXPECT_EQ(done.steps, 0U);
  good(gr_session_advance_until(session, 9, std::numeric_limits<std::int64_t>::max(), nullptr));
  EXPECT_EQ(gr_session_step(session), 14U);
  bad(gr_session_set_rows(session, "train", 5), GR_INPUT, "rows.range");
  bad(gr_session_set_rows(session, nullptr, 5), GR_INPUT, "c.null");
  bad(gr_session_load_state(session, state.data(), bytes - 1), GR_INPUT, "state.size");
  bad(gr_session_save_state(session, nullptr, bytes), GR_INPUT, "c.null");
  const Owned<gr_model> model = parsed();
  gr_session* none = nullptr;
  bad(gr_session_open(model.get(), R"({"rows_vary": ["tarin"]})", &none), GR_INPUT, "split.unknown");
  bad(gr_session_open(parsed().get(), R"({"rows_vary": "train"})", &none), GR_INPUT, "options.value");
}

TEST(CApi, TensorsOfOtherLibraries) {
  // The structs as dlpack.h has them.
  struct Tensor {
    void* data;
    std::int32_t device, device_id, rank;
    std::uint8_t code, bits;
    std::uint16_t lanes;
    std::int64_t *shape, *strides;
    std::uint64_t offset;
  };
  struct Managed {
    Tensor tensor;
    void* manager;
    void (*deleter)(Managed*);
  };
  std::array<float, 6> values = {1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 2> shape = {2, 2}, strides = {2, 1};
  Managed given{{values.data(), 1, 0, 2, 2, 32, 1, shape.data(), strides.data(), 8}, nullptr, nullptr};
  const auto* const tensor = reinterpret_cast<const DLManagedTensor*>(&given);
  gr_type type{};
  const void* data = nullptr;
  good(gr_dlpack_view(tensor, &type, &data));
  EXPECT_EQ(data, values.data() + 2);
  EXPECT_EQ(type.dtype, GR_F32);
  EXPECT_EQ(type.rank, 2);
  EXPECT_EQ(type.shape[1], 2);
  strides = {1, 2};
  bad(gr_dlpack_view(tensor, &type, &data), GR_INPUT, "dlpack.strides");
  given.tensor.strides = nullptr;
  given.tensor.bits = 16;
  bad(gr_dlpack_view(tensor, &type, &data), GR_INPUT, "dlpack.dtype");
  given.tensor.device = 2;
  bad(gr_dlpack_view(tensor, &type, &data), GR_INPUT, "dlpack.device");
  given.tensor = {values.data(), 1, 0, 9, 2, 32, 1, nullptr, nullptr, 0};
  std::array<std::int64_t, 9> many{};
  bad(gr_dlpack_view(tensor, &type, &data), GR_INPUT, "dlpack.shape");
  given.tensor.shape = many.data();
  bad(gr_dlpack_view(tensor, &type, &data), GR_INPUT, "c.rank");

  int released = 0;
  type = {GR_F32, 2, {3, 2}};
  DLManagedTensor* wrapped = nullptr;
  good(gr_dlpack_wrap(
      &type, values.data(), [](void* user) { ++*static_cast<int*>(user); }, &released, &wrapped));
  auto* const managed = reinterpret_cast<Managed*>(wrapped);
  EXPECT_EQ(managed->tensor.data, values.data());
  EXPECT_EQ(managed->tensor.shape[0], 3);
  gr_type again{};
  good(gr_dlpack_view(wrapped, &again, &data));
  EXPECT_EQ(data, values.data());
  EXPECT_EQ(again.shape[0], 3);
  managed->deleter(managed);
  EXPECT_EQ(released, 1);
}

TEST(CApi, AnOlderCallerHasFewerFields) {
  const Owned<gr_session> session = opened();
  gr_train_result result{};
  std::memset(&result, 0x55, sizeof result);
  result.struct_size = offsetof(gr_train_result, seconds);
  good(gr_session_train(session.get(), nullptr, &result));
  EXPECT_EQ(result.epochs, 200);
  EXPECT_EQ(result.steps, 200U);
  EXPECT_EQ(result.struct_size, offsetof(gr_train_result, seconds));
  int untouched = 0;
  std::memset(&untouched, 0x55, sizeof untouched);
  EXPECT_EQ(result.cancelled, untouched);
}

}  // namespace
}  // namespace graphrun
