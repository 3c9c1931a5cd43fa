// session.cpp: gr_session: training, numbered states, predictions, weights.
#include "graphrun/session.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "c_api/guard.h"
#include "c_api/model.h"
#include "c_api/options.h"
#include "c_api/types.h"
#include "graphrun/train_many.h"
#include "graphrun/weights.h"

using namespace graphrun;
using c_api::checked;
using c_api::guarded;

struct gr_session {
  gr_session(Model model, const SessionOptions& options) : session(std::move(model), options) {}
  Session session;
  // Buffers of gr_session_predict, reused so that only the first call allocates.
  std::vector<std::span<const std::byte>> inputs;
  std::vector<std::span<std::byte>> outputs;
};

namespace {

Session& of(gr_session* session) {
  return checked(session, "session").session;
}

std::span<std::byte> room(void* data, std::size_t bytes) {
  if (bytes > 0) checked(static_cast<char*>(data), "the buffer");
  return {static_cast<std::byte*>(data), bytes};
}
std::span<const std::byte> values(const void* data, std::size_t bytes) {
  if (bytes > 0) checked(static_cast<const char*>(data), "the buffer");
  return {static_cast<const std::byte*>(data), bytes};
}

gr_error* predict(gr_session* session, const gr_const_bytes* inputs, std::size_t input_count, const gr_bytes* outputs,
                  std::size_t output_count, DType floats) {
  return guarded([&] {
    gr_session& held = checked(session, "session");
    if (input_count > 0) checked(inputs, "inputs");
    if (output_count > 0) checked(outputs, "outputs");
    held.inputs.clear();
    held.outputs.clear();
    for (std::size_t i = 0; i < input_count; ++i) held.inputs.push_back(values(inputs[i].data, inputs[i].size));
    for (std::size_t i = 0; i < output_count; ++i) held.outputs.push_back(room(outputs[i].data, outputs[i].size));
    held.session.predict(held.inputs, held.outputs, floats);
  });
}

json::Value finite_or_null(double number) {
  return std::isfinite(number) ? json::make(number) : json::make_null();
}

void write_type(JsonWriter& json, std::string_view name, const TensorType& type) {
  json.member("name", name).member("dtype", name_of(type.dtype)).member("shape", type.shape.dims());
}

std::string description(Session& session) {
  const Program& program = session.program();
  const Model& model = session.model();
  using Types = std::vector<std::pair<std::string, TensorType>>;
  const bool predicts = !model.outputs.empty();
  JsonWriter json(JsonWriter::Spacing::after_signs);
  json.begin_object().member("model", model.name).member("executor", session.executor());
  json.member("target", program.target).member("math", name_of(program.math));
  json.member("arena_bytes", program.arena_bytes);
  json.objects("inputs", predicts ? session.prediction_inputs() : Types(), [&](const auto& input) {
    write_type(json, input.first, input.second);
    c_api::write_columns(json, model.data, input.first);
  });
  json.objects("outputs", predicts ? session.prediction_outputs() : Types(), [&](const auto& output) {
    write_type(json, output.first, output.second);
    for (const FittedStatistic& chosen : model.data.thresholds)
      if (chosen.name == output.first) json.member("thresholds", chosen.values);
  });
  std::vector<Buffer> states = program.buffers;
  std::erase_if(states, [](const Buffer& buffer) { return !is_state(buffer.kind); });
  json.objects("states", states, [&](const Buffer& state) {
    write_type(json, state.name, state.type);
    json.member("kind", name_of(state.kind)).member("bytes", state.type.bytes());
  });
  json.objects("splits", model.data.splits,
               [&](const Split& split) { json.member("name", split.name).member("samples", split.samples()); });
  json.member("fallbacks", session.fusion().fallbacks).key("objectives").begin_array();
  for (const ObjectiveSpec& one : model.train.objectives) json.value(one.name);
  json.end_array().key("counters").begin_object();
  for (const auto& [name, count] : session.counters()) json.member(name, count);
  return json.end_object().end_object().text();
}

Split& split_of(Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (Split& split : model.data.splits) {
    if (split.name == name) return split;
    names.push_back(split.name);
  }
  throw Error(ErrorKind::input, "split.unknown", "the model has no split '" + name + "'", did_you_mean(name, names));
}

gr_report report_of(const Report& report) {
  gr_report all{};
  all.struct_size = sizeof all;
  all.epoch = report.epoch;
  all.epochs = report.epochs;
  all.step = report.step;
  all.loss = report.loss;
  all.validation_loss =
      report.validation == nullptr ? std::numeric_limits<double>::quiet_NaN() : report.validation->loss;
  all.seconds = report.seconds;
  all.steps_per_second = report.steps_per_second;
  all.objective_count = report.objectives.size();
  all.objectives = report.objectives.data();
  return all;
}

gr_train_result result_of(const TrainResult& done) {
  gr_train_result all{};
  all.epochs = done.epochs;
  all.steps = done.steps;
  all.seconds = done.seconds;
  all.cancelled = done.cancelled ? 1 : 0;
  return all;
}

}  // namespace

gr_error* gr_session_open(gr_model* model, const char* options, gr_session** session) {
  return guarded([&] {
    gr_session*& to = checked(session, "session");
    const c_api::OpenOptions chosen = c_api::open_options(options);
    Model taken = c_api::take(model);
    for (const std::string& name : chosen.rows_vary) split_of(taken, name).rows_vary = true;
    to = std::make_unique<gr_session>(std::move(taken), chosen).release();
  });
}
void gr_session_free(gr_session* session) {
  delete session;
}

gr_error* gr_session_describe(gr_session* session, char** json) {
  return guarded([&] { checked(json, "json") = c_api::owned_text(description(of(session))); });
}

gr_error* gr_session_train(gr_session* session, const gr_train_options* options, gr_train_result* result) {
  return guarded([&] {
    const gr_train_options known = c_api::known_fields(options, "options");
    c_api::known_fields(result, "result");  // checks struct_size before the time is spent
    Session& trained = of(session);
    TrainOptions train;
    train.keep_losses = false;
    if (known.on_report != nullptr) {
      train.on_report = [&](const Report& report) {
        const gr_report all = report_of(report);
        if (known.on_report(known.user, &all) != 0) trained.cancel();
      };
    }
    c_api::give_fields(result_of(trained.train(train)), result, "result");
  });
}
gr_error* gr_train_many(gr_session* const* sessions, size_t count, const gr_train_many_options* options,
                        gr_train_result* results, gr_error** errors) {
  return guarded([&] {
    const gr_train_many_options known = c_api::known_fields(options, "options");
    const std::size_t stride = c_api::known_fields(results, "results").struct_size;
    std::vector<Session*> all;
    if (count > 0) checked(sessions, "sessions"), checked(errors, "errors");
    for (gr_session* session : std::span(sessions, count)) all.push_back(&of(session));
    TrainManyOptions train;
    train.at_once = known.at_once;
    if (known.on_report != nullptr) {
      train.on_report = [&](std::size_t network, const Report& report) {
        const gr_report given = report_of(report);
        const int answer = known.on_report(known.user, network, &given);
        return answer == 0 ? AfterReport::resume : answer > 0 ? AfterReport::stop : AfterReport::stop_all;
      };
    }
    const std::vector<NetworkResult> done = train_many(all, train);
    for (std::size_t i = 0; i < count; ++i) {
      errors[i] = done[i].error ? guarded([&] { std::rethrow_exception(done[i].error); }) : nullptr;
      if (results == nullptr) continue;
      auto* to = reinterpret_cast<gr_train_result*>(reinterpret_cast<std::byte*>(results) + i * stride);
      to->struct_size = stride;
      c_api::give_fields(result_of(done[i].training), to, "results");
    }
  });
}
void gr_session_cancel(gr_session* session) {
  if (session != nullptr) session->session.cancel();
}
gr_error* gr_session_advance(gr_session* session, uint64_t steps) {
  return guarded([&] { of(session).advance(steps); });
}
gr_error* gr_session_advance_until(gr_session* session, uint64_t most, int64_t deadline, gr_advanced* done) {
  return guarded([&] {
    c_api::known_fields(done, "done");  // checks struct_size before the time is spent
    Session& trained = of(session);
    gr_advanced all{};
    all.steps = most;
    if (deadline == 0) {
      all.finite = trained.advance(most) ? 1 : 0;
    } else {
      // CLOCK_MONOTONIC is the steady clock.
      const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline)};
      all.steps = trained.run_until(until, most);
      all.finite = trained.losses_finite(all.steps) ? 1 : 0;
    }
    all.loss = trained.loss();
    c_api::give_fields(all, done, "done");
  });
}
uint64_t gr_session_step(const gr_session* session) {
  return session == nullptr ? 0 : session->session.step();
}
gr_error* gr_session_loss(gr_session* session, double* loss) {
  return guarded([&] { checked(loss, "loss") = of(session).loss(); });
}

gr_error* gr_session_evaluate(gr_session* session, const char* split, char** json) {
  return guarded([&] {
    char*& to = checked(json, "json");
    const Metrics metrics = of(session).evaluate(&checked(split, "split"));
    json::Value named = json::make_object();
    for (const auto& [name, value] : metrics.values) json::add(named, name, finite_or_null(value));
    json::Value all = json::make_object();
    json::add(all, "loss", finite_or_null(metrics.loss));
    json::add(all, "metrics", std::move(named));
    to = c_api::owned_text(json::line(all));
  });
}

gr_error* gr_session_find(gr_session* session, const char* name, gr_value* value) {
  return guarded([&] {
    gr_value& to = checked(value, "value");
    to = of(session).find(&checked(name, "name")).buffer;
  });
}
gr_error* gr_session_type(gr_session* session, gr_value value, gr_type* type) {
  return guarded([&] {
    gr_type& to = checked(type, "type");
    to = c_api::c_type(of(session).type(ValueId{value}));
  });
}
gr_error* gr_session_read(gr_session* session, gr_value value, void* to, size_t bytes) {
  return guarded([&] { of(session).read(ValueId{value}, room(to, bytes)); });
}
gr_error* gr_session_write(gr_session* session, gr_value value, const void* from, size_t bytes) {
  return guarded([&] { of(session).write(ValueId{value}, values(from, bytes)); });
}
gr_error* gr_session_write_rows(gr_session* session, gr_value value, int64_t first, const void* from, size_t bytes) {
  return guarded([&] { of(session).write_rows(ValueId{value}, first, values(from, bytes)); });
}

gr_error* gr_session_set_rows(gr_session* session, const char* split, int64_t rows) {
  return guarded([&] { of(session).set_rows(&checked(split, "split"), rows); });
}

gr_error* gr_session_state_bytes(gr_session* session, size_t* bytes) {
  return guarded([&] { checked(bytes, "bytes") = of(session).state_bytes(); });
}
gr_error* gr_session_save_state(gr_session* session, void* to, size_t bytes) {
  return guarded([&] { of(session).save_state(room(to, bytes)); });
}
gr_error* gr_session_load_state(gr_session* session, const void* from, size_t bytes) {
  return guarded([&] { of(session).load_state(values(from, bytes)); });
}

gr_error* gr_session_predict(gr_session* session, const gr_const_bytes* inputs, size_t input_count,
                             const gr_bytes* outputs, size_t output_count) {
  return predict(session, inputs, input_count, outputs, output_count, DType::f32);
}
gr_error* gr_session_predict_double(gr_session* session, const gr_const_bytes* inputs, size_t input_count,
                                    const gr_bytes* outputs, size_t output_count) {
  return predict(session, inputs, input_count, outputs, output_count, DType::f64);
}

gr_error* gr_session_save_weights(gr_session* session, const char* path) {
  return guarded([&] { save_weights(of(session), &checked(path, "path")); });
}
gr_error* gr_session_load_weights(gr_session* session, const char* path) {
  return guarded([&] { load_weights(of(session), &checked(path, "path")); });
}
gr_error* gr_session_weights_hash(gr_session* session, char hash[17]) {
  return guarded([&] {
    checked(hash, "hash");
    const std::string text = of(session).weights_hash();
    std::memcpy(hash, text.c_str(), 17);
  });
}
