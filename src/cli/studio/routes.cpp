#include "cli/studio/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <utility>

#include "base/json_writer.h"
#include "cli/command_line/diagnostics.h"
#include "cli/pictures/model_pictures.h"
#include "cli/studio/views.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/model_template.h"
#include "graphrun/show.h"
#include "graphrun/weights.h"
#include "plot/drawing.h"
#include "plot/render.h"
#include "studio/body.h"
#include "studio/page.h"

namespace graphrun::cli {
namespace {

using studio::Body;
using studio::Request;
using studio::Response;
using studio::Ticket;
using Answer = std::optional<Response>;

Response json_response(std::string body) {
  return {200, "application/json", std::move(body), {}};
}
Response svg_response(std::string body) {
  return {200, "image/svg+xml", std::move(body), {}};
}

// Converts any exception into a response, so that the studio keeps running.
template <class F>
Response attempted(F f) noexcept {
  try {
    try {
      return f();
    } catch (const Error& error) {
      return {422, "application/json", error_json(error), {}};
    } catch (const std::bad_alloc&) {
      return studio::rejection(503, "out of memory");
    } catch (const std::exception& bug) {
      return studio::rejection(500, fmt::format("internal error: {}", bug.what()));
    }
  } catch (const std::exception&) {  // out of memory: sends an empty response
    return {503, "text/plain", {}, {}};
  }
}

// Answers from the helper's thread.
template <class F>
Answer later(Studio& studio, Ticket ticket, F f) {
  studio.helper.post([&studio, ticket, f = std::move(f)]() mutable {
    studio.server.answer(ticket, attempted([&] { return f(*studio.views); }));
  });
  return std::nullopt;
}

Error nothing_trained() {
  return Error(ErrorKind::input, "studio.idle", "nothing has been trained yet: click Train and save first");
}

// Answers from the training's thread, between two steps.
template <class F>
Answer with_session(Studio& studio, Ticket ticket, F f) {
  studio.training.look([&studio, ticket, f = std::move(f)](Session* session) mutable {
    studio.server.answer(ticket, attempted([&] {
                           if (session == nullptr) throw nothing_trained();
                           return f(*session);
                         }));
  });
  return std::nullopt;
}

// Saves the current weights to a file for the views that read one, then calls f in the helper's thread.
template <class F>
Answer with_weights(Studio& studio, Ticket ticket, bool needed, F f) {
  studio.training.look([&studio, ticket, needed, f = std::move(f)](Session* session) mutable {
    std::string weights = session == nullptr ? "" : studio.scratch.file("weights.npz");
    const Response saved = attempted([&] {
      if (session == nullptr && needed) throw nothing_trained();
      if (session != nullptr) save_weights(*session, weights);
      return Response{};
    });
    if (saved.status != 200) return studio.server.answer(ticket, saved);
    studio.helper.post([&studio, ticket, weights = std::move(weights), f = std::move(f)]() mutable {
      studio.server.answer(ticket, attempted([&] { return f(*studio.views, weights); }));
    });
  });
  return std::nullopt;
}

// ---- the model

std::string model_json(const Studio& studio) {
  JsonWriter json;
  json.begin_object().member("text", studio.model.text()).member("path", studio.model.path());
  json.member("name", std::filesystem::path(studio.model.path()).filename().string());
  json.member("folder", studio.model.folder().string()).member("run_dir", studio.model.run_dir());
  json.member("changed", studio.model.is_changed_outside()).member("models", studio.model.files(is_model));
  json.member("transforms", help_topics("transforms"))
      .member("executors", executor_names())
      .member("executor", studio.model.executor());
  return json.member("tables", studio.model.files(is_table)).end_object().text();
}

Answer get_model(Studio& studio, const Request&, Ticket) {
  return json_response(model_json(studio));
}

Answer post_open(Studio& studio, const Request& request, Ticket) {
  studio.model.open(Body(request.body).text("name"));
  return json_response(model_json(studio));
}

Answer post_save(Studio& studio, const Request& request, Ticket) {
  const Body body(request.body);
  studio.model.set(body.text("text"));
  studio.model.save(body.text("name"), body.text_or("over", "") == "yes");
  return json_response(model_json(studio));
}

Answer post_check(Studio& studio, const Request& request, Ticket ticket) {
  const Body body(request.body);
  studio.model.set(body.text("text"), body.text_or("name", ""));
  return later(studio, ticket, [arguments = studio.model.arguments("check", false)](StudioViews& views) {
    try {
      return json_response(views.check(arguments));
    } catch (const Error& error) {  // an invalid model is a result, not a failed request
      return json_response(error_json(error));
    }
  });
}

std::string columns_json(const std::string& table, const std::filesystem::path& path) {
  JsonWriter json;
  json.begin_object().member("name", table).member("columns", table_columns(path.string()));
  return json.end_object().text();
}

// Stores an uploaded table under a free name, so that no file is overwritten. An invalid table leaves no file.
Answer post_data(Studio& studio, const Request& request, Ticket) {
  const Body body(request.body);
  const std::filesystem::path wanted = std::filesystem::path(body.text("name")).filename();
  if (!is_table(wanted))
    throw Error(ErrorKind::input, "studio.table", fmt::format("'{}' is not a CSV file", wanted.string()),
                "other files are read in place: list them in the model's \"data\"");
  const std::string& text = body.text("text");
  if (text.empty()) throw Error(ErrorKind::input, "studio.table", fmt::format("'{}' is empty", wanted.string()));
  std::string name = wanted.string();
  std::filesystem::path path = studio.model.place(name);
  std::error_code error;
  for (int i = 2; std::filesystem::exists(path, error); ++i) {
    if (read_small_file(path) == text) return json_response(columns_json(name, path));
    name = fmt::format("{}-{}{}", wanted.stem().string(), i, wanted.extension().string());
    path = studio.model.place(name);
  }
  write_whole_file(path, text);
  try {
    return json_response(columns_json(name, path));
  } catch (const Error&) {
    std::filesystem::remove(path, error);
    throw;
  }
}

// Columns of a table in the folder, of any size.
Answer get_columns(Studio& studio, const Request& request, Ticket ticket) {
  const std::string table(request.argument("table"));
  return later(studio, ticket, [table, path = studio.model.place(table)](StudioViews&) {
    return json_response(columns_json(table, path));
  });
}

Answer post_init(Studio& studio, const Request& request, Ticket ticket) {
  const Body body(request.body);
  const std::string table = body.text("table");
  return later(studio, ticket,
               [table, path = studio.model.place(table).string(), target = body.text("target")](StudioViews&) {
                 const ModelTemplate made = model_template(path, target, table);
                 JsonWriter json;
                 json.begin_object().member("text", made.text).member("notes", made.notes);
                 return json_response(json.end_object().text());
               });
}

// ---- the training

Answer post_train(Studio& studio, const Request& request, Ticket) {
  const Body body(request.body);
  studio.model.set(body.text("text"), body.text_or("name", ""));
  Arguments arguments = studio.model.arguments("train", true);
  studio.trained_text = studio.model.text();
  arguments.hash_weights = true;
  if (body.text_or("save", "yes") == "yes") arguments.run_dir = studio.model.run_dir();
  arguments.command = {"graphrun", "train", arguments.model, "--run-dir", arguments.run_dir};
  if (arguments.session.executor != "cpu") arguments.command.push_back("--executor=" + arguments.session.executor);
  studio.training.start(arguments);
  return json_response("{}");
}

Answer post_control(Studio& studio, const Request& request, Ticket) {
  using Control = StudioTraining::Control;
  constexpr std::pair<std::string_view, Control> kActions[] = {{"pause", Control::pause},
                                                               {"resume", Control::resume},
                                                               {"step", Control::step},
                                                               {"stop", Control::stop},
                                                               {"reset", Control::reset}};
  const std::string action = Body(request.body).text("action");
  for (const auto& [name, control] : kActions) {
    if (name != action) continue;
    studio.training.control(control);
    return json_response("{}");
  }
  throw Error(ErrorKind::input, "studio.action", fmt::format("there is no action '{}'", action));
}

Answer post_speed(Studio& studio, const Request& request, Ticket) {
  const std::optional<double> value = Body(request.body).number("value");
  if (!value || *value < 0)
    throw Error(ErrorKind::input, "studio.body", "'value' is not a number of epochs per second");
  studio.training.set_speed(*value);
  return json_response("{}");
}

// Changes a hyperparameter from the next step on.
Answer post_number(Studio& studio, const Request& request, Ticket ticket) {
  const Body body(request.body);
  const std::optional<double> value = body.number("value");
  if (!value) throw Error(ErrorKind::input, "studio.body", "'value' is not a number");
  return with_session(studio, ticket, [&studio, name = body.text("name"), value = *value](Session&) {
    studio.training.change(name, value);
    return json_response("{}");
  });
}

Answer get_events(Studio& studio, const Request&, Ticket) {
  return Response{
      200, "text/event-stream", "retry: 1000\n\n" + studio::event_text("hello", studio.training.state_json()), {}};
}

// `training` is the training's number: fails if another one has started since the request.
Answer get_picture(Studio& studio, const Request& request, Ticket ticket) {
  const std::string what(request.argument("what")), split(request.argument("split")), array(request.argument("array"));
  const std::string training(request.argument("training"));
  studio.training.look([=, &studio](Session* session) {
    studio.server.answer(
        ticket, attempted([&] {
          if (!training.empty() && training != fmt::to_string(studio.training.number()))
            return Response{204, "text/plain", "", {}};
          if (session == nullptr) throw nothing_trained();
          const Picture picture = model_picture(*session, what, split.empty() ? summary_split(*session) : split, array);
          return svg_response(std::visit([](const auto& drawn) { return plot::as_svg(plot::draw(drawn)); }, picture));
        }));
  });
  return std::nullopt;
}

Answer post_predict(Studio& studio, const Request& request, Ticket ticket) {
  const Body body(request.body);
  const std::string rows = studio.scratch.file("rows.csv");
  Arguments arguments = studio.model.arguments("predict", true);
  arguments.load.text = std::make_shared<std::optional<std::string>>(studio.trained_text);  // not the edited text
  arguments.word = rows;
  arguments.output = studio.scratch.file("predictions.json");
  arguments.json = true;
  arguments.probabilities = body.text_or("probabilities", "") == "yes";
  return with_weights(studio, ticket, true,
                      [arguments, rows, table = body.text("rows")](StudioViews&, const std::string& weights) mutable {
                        write_whole_file(rows, table);
                        arguments.load.weights = weights;
                        try {
                          return json_response(StudioViews::written(arguments));
                        } catch (const Error& error) {  // the page has rows, not a file
                          std::string text = error_json(error);
                          for (std::size_t at = 0; (at = text.find(rows, at)) != std::string::npos;)
                            text.replace(at, rows.size(), "rows");
                          return Response{422, "application/json", std::move(text), {}};
                        }
                      });
}

// Current weights, also while the training is paused.
Answer get_weights(Studio& studio, const Request&, Ticket ticket) {
  return with_weights(studio, ticket, true, [](StudioViews&, const std::string& weights) {
    return Response{200, "application/octet-stream", read_small_file(weights), {}};
  });
}

// The trained model with its current weights, as C or ONNX by the extension of the name.
Answer get_export(Studio& studio, const Request& request, Ticket ticket) {
  const std::filesystem::path name = std::filesystem::path(request.argument("name")).filename();
  Arguments arguments = studio.model.arguments(name.extension() == ".onnx" ? "export-onnx" : "export-c", true);
  arguments.load.text = std::make_shared<std::optional<std::string>>(studio.trained_text);
  arguments.output = studio.scratch.file(name.string());
  return with_weights(studio, ticket, true, [arguments](StudioViews&, const std::string& weights) mutable {
    arguments.load.weights = weights;
    return Response{200, "application/octet-stream", StudioViews::written(arguments), {}};
  });
}

// ---- inspection

// Selects an executor by its registered name only, so that no request can load a library by path.
void take_executor(Arguments& arguments, std::string_view name) {
  if (name.empty()) return;
  const std::vector<std::string> names = executor_names();
  if (name != arguments.session.executor && std::find(names.begin(), names.end(), name) == names.end())
    throw Error(ErrorKind::input, "executor.unknown", fmt::format("there is no executor '{}'", name),
                fmt::format("there is {}", fmt::join(names, ", ")));
  arguments.session.executor = std::string(name);
  arguments.session.target.clear();
}

Answer get_graph_svg(Studio& studio, const Request&, Ticket ticket) {
  return later(studio, ticket, [](StudioViews& views) { return svg_response(views.graph_svg); });
}

Answer get_plan(Studio& studio, const Request& request, Ticket ticket) {
  Arguments arguments = studio.model.arguments("plan", true);
  take_executor(arguments, request.argument("executor"));
  return later(studio, ticket, [arguments](StudioViews& views) { return json_response(views.plan(arguments)); });
}

Answer get_plan_svg(Studio& studio, const Request&, Ticket ticket) {
  return later(studio, ticket, [](StudioViews& views) { return svg_response(views.plan_svg); });
}

// Calls f with the current weights. Weights of a different model than the current text do not apply: f then runs with
// the initial weights, and its answer reports it.
template <class F>
Answer inspected(Studio& studio, const Request& request, Ticket ticket, F f) {
  Arguments arguments = studio.model.arguments("show", true);
  take_executor(arguments, request.argument("executor"));
  return with_weights(studio, ticket, false, [arguments, f](StudioViews& views, const std::string& weights) mutable {
    arguments.load.weights = weights;
    try {
      return json_response(f(views, arguments));
    } catch (const Error& error) {
      constexpr std::string_view kOfAnother[] = {"weights.missing", "weights.shape", "weights.unknown", "weights.dtype",
                                                 "weights.fitted"};
      const std::string& code = error.diagnostics().front().code;
      if (std::find(std::begin(kOfAnother), std::end(kOfAnother), code) == std::end(kOfAnother)) throw;
    }
    arguments.load.weights.clear();
    return json_response(f(views, arguments));
  });
}

Answer get_values(Studio& studio, const Request& request, Ticket ticket) {
  return inspected(studio, request, ticket, [](StudioViews& views, const Arguments& at) { return views.values(at); });
}

Answer get_costs(Studio& studio, const Request& request, Ticket ticket) {
  return inspected(studio, request, ticket, [](StudioViews&, const Arguments& at) { return StudioViews::costs(at); });
}

Answer get_value_svg(Studio& studio, const Request& request, Ticket ticket) {
  const std::string name(request.argument("name"));
  const bool histogram = request.argument("as") == "histogram";
  return later(studio, ticket, [=](StudioViews& views) { return svg_response(views.value_svg(name, histogram)); });
}

Answer post_verify(Studio& studio, const Request& request, Ticket ticket) {
  Arguments arguments = studio.model.arguments("verify", true);
  take_executor(arguments, Body(request.body).text_or("executor", ""));
  return later(studio, ticket, [arguments](StudioViews&) { return json_response(StudioViews::verified(arguments)); });
}

// ---- stored runs

Answer get_runs(Studio& studio, const Request&, Ticket ticket) {
  return later(studio, ticket,
               [folder = studio.model.run_dir()](StudioViews& views) { return json_response(views.runs(folder)); });
}

// A file of a run, to download or to draw.
Answer get_run_file(Studio& studio, const Request& request, Ticket ticket) {
  const std::string run(request.argument("run")), file(request.argument("file"));
  constexpr std::string_view kRunFiles[] = {"model.json", "log.csv", "result.json", "weights.npz", "changes.json"};
  if (std::find(std::begin(kRunFiles), std::end(kRunFiles), file) == std::end(kRunFiles) || run.empty() ||
      run.find('/') != std::string::npos || run.starts_with('.'))
    throw Error(ErrorKind::input, "studio.run_file", fmt::format("a run has no file '{}'", file));
  return later(studio, ticket, [=, folder = studio.model.run_dir()](StudioViews&) {
    const std::string name = fmt::format("{}-{}", run, file);
    return Response{
        200,
        file.ends_with(".csv") ? "text/csv; charset=utf-8" : "application/octet-stream",
        read_small_file(std::filesystem::path(folder) / run / file),
        {{"Content-Disposition", fmt::format("attachment; filename*=UTF-8''{}", studio::percent_encoded(name))}}};
  });
}

constexpr StudioRoute kRoutes[] = {{"GET", "/api/model", get_model},         {"POST", "/api/open", post_open},
                                   {"POST", "/api/save", post_save},         {"POST", "/api/check", post_check},
                                   {"POST", "/api/data", post_data},         {"GET", "/api/columns", get_columns},
                                   {"POST", "/api/init", post_init},         {"POST", "/api/train", post_train},
                                   {"POST", "/api/control", post_control},   {"POST", "/api/number", post_number},
                                   {"POST", "/api/speed", post_speed},       {"GET", "/api/events", get_events},
                                   {"GET", "/api/picture.svg", get_picture}, {"POST", "/api/predict", post_predict},
                                   {"GET", "/api/weights", get_weights},     {"GET", "/api/graph.svg", get_graph_svg},
                                   {"GET", "/api/plan", get_plan},           {"GET", "/api/plan.svg", get_plan_svg},
                                   {"GET", "/api/values", get_values},       {"GET", "/api/costs", get_costs},
                                   {"GET", "/api/value.svg", get_value_svg}, {"POST", "/api/verify", post_verify},
                                   {"GET", "/api/runs", get_runs},           {"GET", "/api/run-file", get_run_file},
                                   {"GET", "/api/export", get_export}};

Response page_file(const Request& request) {
  const std::string_view name = request.path == "/" ? "index.html" : std::string_view(request.path).substr(1);
  const auto found = std::find_if(studio::kPageFiles.begin(), studio::kPageFiles.end(),
                                  [&](const studio::PageFile& file) { return file.name == name; });
  if (found == studio::kPageFiles.end()) return studio::rejection(404, "there is no such page");
  return {200, std::string(studio::type_of(name)), std::string(found->text), {}};
}

}  // namespace

std::span<const StudioRoute> studio_routes() {
  return kRoutes;
}

Studio::Studio(const Arguments& arguments)
    : model(arguments),
      server(arguments.studio.port),
      views(std::make_unique<StudioViews>()),
      training([this](std::string_view event, std::string_view json) { server.publish(event, json); }) {
  read_runs();
}

// Reads the stored runs ahead, in small batches, so that requests do not wait for all of them.
void Studio::read_runs() {
  helper.post([this, folder = model.run_dir()] {
    attempted([&] {
      views->read_runs(folder);
      return Response{};
    });
    if (views->stored_runs.unread() > 0) read_runs();
  });
}

Studio::~Studio() = default;

std::optional<studio::Response> Studio::answer(const Request& request, Ticket ticket) {
  bool is_known = false;
  std::optional<studio::Response> made;
  const Response response = attempted([&] {
    for (const StudioRoute& route : kRoutes) {
      if (route.path != request.path) continue;
      is_known = true;
      if (route.method != request.method) continue;
      made = route.answer(*this, request, ticket);
      return made ? *made : Response{};
    }
    made = is_known || request.method != "GET"
               ? studio::rejection(is_known ? 405 : 404, "unknown path, or a method that it does not support")
               : page_file(request);
    return *made;
  });
  if (response.status != 200) return response;
  return made;
}

}  // namespace graphrun::cli
