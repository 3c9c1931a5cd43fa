// The studio's routes, from strangers and from the page: who may ask, the training, what is inside.
#include "studio_fixture.h"

#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/studio/curve_points.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"

namespace graphrun::testing {
namespace {

TEST_F(StudioRoutes, StrangersHear403OnEveryRoute) {
  start();
  std::vector<std::pair<std::string, std::string>> routes = {
      {"GET", "/"}, {"GET", "/app.js"}, {"GET", "/nowhere"}, {"POST", "/nowhere"}, {"DELETE", "/api/model"}};
  for (const cli::StudioRoute& route : cli::studio_routes()) routes.emplace_back(route.method, route.path);
  ASSERT_GT(routes.size(), 15u);
  const std::string own_host = fmt::format("Host: {}\r\n", host()),
                    own_origin = fmt::format("Origin: http://{}\r\n", host());
  for (const auto& [method, path] : routes) {
    const std::string strangers[] = {
        own_host + own_origin,  // no cookie
        own_host + own_origin + fmt::format("Cookie: graphrun_studio_{}=0123\r\n", port()),
        "Host: evil.example\r\n" + own_origin + cookie(),  // a name that was rebound
        fmt::format("Host: evil.example:{}\r\n", port()) + own_origin + cookie(),
        own_host + "Origin: http://evil.example\r\n" + cookie(),  // another site's page
        own_host + "Origin: null\r\n" + cookie(),
    };
    for (const std::string& headers : strangers) {
      const std::string answer = said(request(method, path, headers, "{}"));
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << method << ' ' << path << '\n'
                                                       << headers << answer.substr(0, 200);
    }
  }
  EXPECT_EQ(asked("GET", "/nowhere").first, 404);
  EXPECT_EQ(asked("GET", "/").first, 200);
  EXPECT_EQ(asked("POST", "/api/model", "{}").first, 405);
}

TEST_F(StudioRoutes, TheAddressGivesTheCookieOnce) {
  start();
  const std::string url = studio_->server.access().url();
  const std::string path = url.substr(url.find("/?"));
  const std::string answer = said(request("GET", path, fmt::format("Host: {}\r\n", host())));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 303 ")) << answer;
  EXPECT_NE(answer.find("\r\nLocation: /\r\n"), std::string::npos);
  EXPECT_NE(answer.find("HttpOnly; SameSite=Strict"), std::string::npos);
}

// The page's training is the command's: the same weights, and a run that the command line can read.
TEST_F(StudioRoutes, TrainsAsThePrintedCommandDoes) {
  start();
  ASSERT_EQ(post("/api/train", {{"text", kXor}}).first, 200);
  const std::string text = heard(R"("state":"done")");
  const std::string hash = word_after(text, R"("weights_hash":")"), command = word_after(text, R"("command":")");
  ASSERT_EQ(hash.size(), 16u) << text;
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  words.insert(words.end(), {"--json", "--quiet"});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const cli::Arguments again = cli::parse(static_cast<int>(argv.size()), argv.data());
  cli::Diagnostics quiet(cli::Diagnostics::Format::text, true);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(cli::find_verb("train")->run(again, quiet), cli::kDone);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find(hash), std::string::npos) << command;
  EXPECT_NE(asked("GET", "/api/runs").second.find(hash), std::string::npos);
  const auto [status, log] = asked("GET", "/api/run-file?run=0001&file=log.csv");
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(log.starts_with("epoch,")) << log.substr(0, 100);
  EXPECT_TRUE(asked("GET", "/api/picture.svg?what=surface").second.starts_with("<svg")) << "no surface";
  const auto [predicted, rows] = post("/api/predict", {{"rows", "x0,x1\n0,1\n1,1\n"}});
  EXPECT_EQ(predicted, 200) << rows;
  EXPECT_NE(rows.find(R"("rows":2)"), std::string::npos) << rows;
}

// Predictions are those of the model that was trained, views those of the text, with its weights where they fit.
TEST_F(StudioRoutes, AnEditedModelIsLookedIntoWithItsInitialWeights) {
  start();
  ASSERT_EQ(post("/api/train", {{"text", kXor}}).first, 200);
  heard(R"("state":"done")");
  const auto trained = [&](const std::string& view) {
    const auto [status, answer] = asked("GET", view);
    EXPECT_EQ(status, 200) << answer;
    return answer.find(R"("trained":true)") != std::string::npos;
  };
  EXPECT_TRUE(trained("/api/values"));
  const std::string before = post("/api/predict", {{"rows", "x0,x1\n0,1\n"}}).second;
  std::string wider = kXor;
  wider.replace(wider.find("\"units\": 4"), 10, "\"units\": 5");
  ASSERT_EQ(post("/api/check", {{"text", wider}}).first, 200);
  EXPECT_FALSE(trained("/api/values"));
  EXPECT_FALSE(trained("/api/costs"));
  EXPECT_EQ(post("/api/predict", {{"rows", "x0,x1\n0,1\n"}}).second, before);
  ASSERT_EQ(post("/api/check", {{"text", kXor}}).first, 200);
  EXPECT_TRUE(trained("/api/costs"));
}

TEST_F(StudioRoutes, PausesStepsAndEnds) {
  start();
  ASSERT_EQ(post("/api/train", {{"text", endless()}}).first, 200);
  heard(R"("state":"running")");
  EXPECT_TRUE(asked("GET", "/api/picture.svg?what=weights").second.starts_with("<svg"));  // while it trains
  post("/api/control", {{"action", "pause"}});
  const std::string paused = heard(R"("state":"paused")");
  HttpClient events(port());
  events.say(request("GET", "/api/events", fmt::format("Host: {}\r\n{}", host(), cookie())));
  events.until(R"("state":"paused")");
  std::vector<std::uint64_t> steps;
  for (int i = 0; i < 3; ++i) {
    post("/api/control", {{"action", "step"}});
    const std::string said = events.until(R"("state":"paused")");
    const std::size_t at = said.rfind("event: progress\ndata: {\"step\":");
    ASSERT_NE(at, std::string::npos) << said;
    steps.push_back(std::stoull(said.substr(at + 30)));
  }
  EXPECT_EQ(steps[1], steps[0] + 1);
  EXPECT_EQ(steps[2], steps[1] + 1);
  EXPECT_EQ(asked("GET", "/api/values").first, 200);  // values with the current weights
  post("/api/control", {{"action", "resume"}});
  events.until(R"("state":"running")");
  post("/api/control", {{"action", "stop"}});
  heard(R"("state":"stopped")");
  post("/api/control", {{"action", "reset"}});
  heard(R"("state":"idle")");
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=weights").first, 422);
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=weights&training=0").first, 204);
}

// A speed limit changes when steps run, not their results. The weights of each epoch are kept for the page.
TEST_F(StudioRoutes, TrainsAtASpeedAndKeepsTheWeightsOfEachEpoch) {
  start();
  EXPECT_EQ(asked("POST", "/api/speed", R"({"value":-1})").first, 422);
  EXPECT_EQ(asked("POST", "/api/speed", "{}").first, 422);
  ASSERT_EQ(asked("POST", "/api/speed", R"({"value":20000})").first, 200);
  ASSERT_EQ(post("/api/train", {{"text", kXor}}).first, 200);
  const std::string limited = heard(R"("state":"done","number":1)");
  EXPECT_NE(limited.find(R"("speed":20000)"), std::string::npos);
  EXPECT_NE(limited.find(R"("parameters":[{"name":"h.W","elements":8},{"name":"h.b","elements":4})"),
            std::string::npos);
  EXPECT_NE(limited.find(R"("rows":{"train":{"x":[0,0,0,1,1,0,1,1],"y":[0,1,1,0]}})"), std::string::npos) << limited;
  EXPECT_NE(limited.find("mse"), std::string::npos) << "no results as text";
  std::size_t frames = 0;
  for (std::size_t at = 0; (at = limited.find(R"("weights":")", at)) != std::string::npos; ++at, ++frames)
    EXPECT_EQ(word_after(limited.substr(at), R"("weights":")").size(), 92u);  // 17 parameters
  EXPECT_GT(frames, 150u);
  EXPECT_NE(limited.find(R"([{"step":0,"epoch":0,"weights":)"), std::string::npos);
  ASSERT_EQ(asked("POST", "/api/speed", R"({"value":0})").first, 200);
  ASSERT_EQ(post("/api/train", {{"text", kXor}, {"save", "no"}}).first, 200);
  const std::string free = heard(R"("state":"done","number":2)");
  EXPECT_EQ(word_after(free, R"("weights_hash":")"), word_after(limited, R"("weights_hash":")"));
  EXPECT_EQ(word_after(free, R"("run":")"), "");
  EXPECT_FALSE(std::filesystem::exists(own_.path() / "runs" / "0002"));
}

// A hyperparameter changed during training: the run records it, and its replay has the same weights.
TEST_F(StudioRoutes, ChangesTheLearningRateWhileItTrains) {
  start();
  std::string text = endless();
  EXPECT_EQ(asked("POST", "/api/number", R"({"name":"lr","value":0.05})").first, 422);  // nothing trains
  ASSERT_EQ(post("/api/train", {{"text", text}}).first, 200);
  heard(R"("numbers":{"lr":0.1})");
  ASSERT_EQ(asked("POST", "/api/number", R"({"name":"lr","value":0.05})").first, 200);
  post("/api/control", {{"action", "pause"}});
  heard(R"("state":"paused")");
  ASSERT_EQ(asked("POST", "/api/number", R"({"name":"lr","value":0.025})").first, 200);
  for (const char* bad : {R"({"name":"lr","value":-1})", R"({"name":"lr","value":1e300})", R"({"name":"lr"})",
                          R"({"name":"momentum","value":0.5})", R"({"name":"../lr","value":0.5})"})
    EXPECT_EQ(asked("POST", "/api/number", bad).first, 422) << bad;
  post("/api/control", {{"action", "resume"}});
  heard(R"("state":"running")");
  post("/api/control", {{"action", "stop"}});
  heard(R"("state":"stopped")");
  const std::string stopped = heard(R"("points":[)");
  EXPECT_NE(stopped.find(R"("from":0.05,"to":0.025)"), std::string::npos) << stopped;
  const std::string run = (own_.path() / "runs" / "0001").string();
  EXPECT_EQ(word_after(stopped, R"("command":")"), "graphrun replay " + run);
  const std::vector<HyperparameterChange> changes = read_changes(run);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].from, 0.1);
  EXPECT_EQ(changes[1].to, 0.025);
  EXPECT_GE(changes[1].step, changes[0].step);
  EXPECT_NE(asked("GET", "/api/runs").second.find("lr 0.1 -> 0.05 after step"), std::string::npos);
  // Stopped before its first report, and repeated up to there.
  EXPECT_EQ(word_after(stopped, R"("weights_hash":")").size(), 16u);
  expect_replayed(run, "where it was stopped, weights " + word_after(stopped, R"("weights_hash":")"));
}

// Replayed with its changes, to the bit; without them it is another run.
TEST_F(StudioRoutes, AChangedRunIsReplayedWithItsChanges) {
  start();
  std::string text = kXor;
  ASSERT_EQ(post("/api/train", {{"text", text.replace(text.find("500"), 3, "400000")}}).first, 200);
  post("/api/control", {{"action", "pause"}});  // while it loads, or soon after
  heard(R"("state":"paused")");
  ASSERT_EQ(asked("POST", "/api/number", R"({"name":"lr","value":0.3})").first, 200);
  post("/api/control", {{"action", "resume"}});
  heard(R"("state":"done")");
  const std::string run = (own_.path() / "runs" / "0001").string();
  expect_replayed(run, "and at the end");
  fs::remove(fs::path(run) / "changes.json");
  EXPECT_THROW(replayed(run), Error);
}

// Another training begins where one is under way; leaving while one is under way ends it.
TEST_F(StudioRoutes, OneTrainingAtATime) {
  start();
  post("/api/train", {{"text", endless()}});
  heard(R"("state":"running")");
  post("/api/train", {{"text", kXor}});
  heard(R"("state":"done")");
  post("/api/train", {{"text", endless()}});
  heard(R"("state":"running")");
}

// As the command line says it: place, pointer, message.
TEST_F(StudioRoutes, ReportsOfErrorsWhereTheyAre) {
  std::string text = kXor;
  text.replace(text.find("\"mse\""), 5, "\"msee\"");
  start(text);
  EXPECT_NE(asked("GET", "/api/model").second.find("msee"), std::string::npos);  // the page opens all the same
  const auto [status, answer] = post("/api/check", {{"text", text}});
  EXPECT_EQ(status, 200);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("msee")), '\n');
  for (const std::string& part :
       {std::string(R"("pointer":"/train/metrics/0")"), fmt::format("\"line\":{}", line), std::string("did you mean")})
    EXPECT_NE(answer.find(part), std::string::npos) << answer;
  EXPECT_NE(post("/api/check", {{"text", "{"}}).second.find("json.syntax"), std::string::npos);
  EXPECT_EQ(post("/api/check", {}).first, 422);
  EXPECT_EQ(asked("POST", "/api/check", "nonsense").first, 422);
  EXPECT_EQ(post("/api/control", {{"action", "dance"}}).first, 422);
  const auto [good, summary] = post("/api/check", {{"text", kXor}});
  EXPECT_EQ(good, 200) << summary;
  for (const char* part : {R"("parameters":17)", R"("path":"graph.h.units")", R"("boxes":[)"})
    EXPECT_NE(summary.find(part), std::string::npos) << part;
  EXPECT_TRUE(asked("GET", "/api/graph.svg").second.starts_with("<svg"));
  EXPECT_NE(asked("GET", "/api/plan").second.find(R"("arena_bytes")"), std::string::npos);
  EXPECT_NE(post("/api/verify", {}).second.find(R"("passed":true)"), std::string::npos);
  EXPECT_NE(asked("GET", "/api/values").second.find(R"("name":"h.W:gradient")"), std::string::npos);
  EXPECT_TRUE(asked("GET", "/api/value.svg?name=h.W&as=heat").second.starts_with("<svg"));
  EXPECT_TRUE(asked("GET", "/api/value.svg?name=h&as=histogram").second.starts_with("<svg"));
  EXPECT_EQ(asked("GET", "/api/value.svg?name=nobody").first, 422);
}

// All curves reach the last step, whatever there was time for.
TEST_F(StudioRoutes, CurvesEndWithTheWeightsThatAreKept) {
  std::string text = kXor;
  text.replace(text.find("]}}}"), 4, R"(]}}, "validation": {"inline": {"x": [[0.1, 0], [1, 0.9]], "y": [0, 0]}}})");
  start(text);
  ASSERT_EQ(post("/api/train", {{"text", text}}).first, 200);
  heard(R"("state":"done")");
  const std::string said = heard(R"("points":[)");
  const std::size_t at = said.rfind(R"({"epoch":500,"step":500,"loss":)");
  ASSERT_NE(at, std::string::npos) << said;
  const std::string key = R"("validation":{"loss":)";
  const std::size_t point = said.find(key, at), result = said.find(key);
  ASSERT_NE(point, std::string::npos) << said.substr(at);
  const auto number = [&](std::size_t from) { return std::stod(said.substr(from + key.size())); };
  EXPECT_EQ(number(point), number(result)) << said;
  // Before a late first report, progress events have the validation loss.
  std::string long_one = text;
  long_one.replace(long_one.find("500"), 3, "2000000000");
  ASSERT_EQ(post("/api/train", {{"text", long_one}}).first, 200);
  heard(R"("state":"running","number":2)");
  HttpClient events(port());
  events.say(request("GET", "/api/events", fmt::format("Host: {}\r\n{}", host(), cookie())));
  EXPECT_NE(events.until(R"(,"validation":{"loss":)").find("event: progress"), std::string::npos);
}

// Pages that go while it trains end nothing, and the end waits for none that stays: it would for ever.
TEST_F(StudioRoutes, ClosedPagesEndNothingAndOpenOnesDelayNothing) {
  start();
  post("/api/train", {{"text", endless()}});
  {
    HttpClient page(port());
    page.say(request("GET", "/api/events", fmt::format("Host: {}\r\n{}", host(), cookie())));
    page.until(R"("state":"running")");
  }  // closed
  std::vector<std::unique_ptr<HttpClient>> pages;
  for (int i = 0; i < 20; ++i) {
    pages.push_back(std::make_unique<HttpClient>(port()));
    pages.back()->say(request("GET", "/api/events", fmt::format("Host: {}\r\n{}", host(), cookie())));
    const std::string text = pages.back()->until(R"("state":"running")");
    EXPECT_NE(text.find(R"("state":"running")"), std::string::npos) << i;
  }
  const std::uint64_t once = 1;
  ASSERT_EQ(::write(stop_, &once, sizeof once), static_cast<ssize_t>(sizeof once));
  thread_.join();
  studio_.reset();  // ends the training and keeps it
  ::close(stop_);
  EXPECT_TRUE(fs::exists(own_.path() / "runs" / "0001" / "result.json"));
}

// Evaluation plots of a classifier with two inputs.
TEST_F(StudioRoutes, DrawsSurfaceConfusionAndWhatElseThereIs) {
  const std::string model = R"json({
  "format": 1, "name": "halves",
  "data": {"source": {"random": {"rows": 200, "seed": 7, "columns": {"u": {"uniform": [-1, 1]}, "v": {"uniform": [-1, 1]}}},
                      "x": ["u", "v"], "y": "cast(u > v, dtype=f32)"}, "split": [0.6, 0.2, 0.2]},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "graph": [{"name": "logit", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean(sigmoid_cross_entropy(logit, y))"],
  "outputs": {"logit": "y"},
  "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"sgd": {"lr": 0.5}}, "batch": 20, "epochs": 20}
})json";
  start(model);
  post("/api/train", {{"text", model}});
  heard(R"("state":"done")");
  const std::string text = heard(R"("points":[)");
  for (const char* what : {"surface", "confusion"}) {
    EXPECT_NE(text.find(fmt::format("\"{}\"", what)), std::string::npos) << what;
    for (const char* split : {"train", "validation", "test"}) {
      const auto [status, drawn] = asked("GET", fmt::format("/api/picture.svg?what={}&split={}", what, split));
      EXPECT_EQ(status, 200) << what << split << drawn;
      EXPECT_TRUE(drawn.starts_with("<svg")) << what << split;
    }
  }
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=misclassified").first, 422);  // its rows are not images
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=surface&split=nowhere").first, 422);
}

// Time, bytes and error of each value; executors by their names only.
TEST_F(StudioRoutes, ReportsWhatEachValueCosts) {
  start();
  const auto [status, text] = asked("GET", "/api/costs?executor=cpu");
  ASSERT_EQ(status, 200) << text;
  for (const char* name : {"h", "y_hat", "loss", "h.W:gradient"}) {
    const std::size_t at = text.find(fmt::format(R"({{"name":"{}","seconds":)", name));
    ASSERT_NE(at, std::string::npos) << name << text;
    const std::string node = text.substr(at, text.find('}', at) - at);
    const std::size_t seconds = node.find("\"seconds\":") + 10, ulp = node.find("\"ulp\":") + 6;
    EXPECT_GT(std::stod(node.substr(seconds)), 0) << node;
    EXPECT_LT(std::stod(node.substr(ulp)), 100) << node;
  }
  EXPECT_NE(text.find(R"("name":"h.W")"), std::string::npos);
  EXPECT_EQ(text.find("x:gradient"), std::string::npos) << "training computes none";
  EXPECT_NE(asked("GET", "/api/costs?executor=ref").second.find(R"("difference":0,"ulp":0)"), std::string::npos);
  for (const char* view : {"/api/costs", "/api/plan", "/api/values"}) {
    for (const char* name : {"./evil.so", "%2ftmp%2fevil.so", "cpuu", "auto"})
      EXPECT_EQ(asked("GET", fmt::format("{}?executor={}", view, name)).first, 422) << view << name;
    EXPECT_EQ(asked("GET", fmt::format("{}?executor=ref", view)).first, 200) << view;
  }
  EXPECT_EQ(post("/api/verify", {{"executor", "./evil.so"}}).first, 422);
}

TEST(CurvePoints, AreThinnedAndLoseNeitherTheFirstNorTheLast) {
  cli::CurvePoints points;
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    if (points.wants(step == 20'000)) points.add(fmt::format(R"({{"step":{},"loss":0.123456789}})", step), step);
    ASSERT_LE(points.all().size(), 4000u);
  }
  points.add("last", 20'000);  // in the place of that
  EXPECT_EQ(points.all().back(), "last");
  EXPECT_GT(points.all().size(), 2000u);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i + 1 < points.all().size(); ++i) {
    ASSERT_TRUE(points.all()[i].starts_with("{\"step\":")) << i;
    const std::uint64_t step = std::stoull(points.all()[i].substr(8));
    ASSERT_EQ(step, i == 0 ? 1 : before + 8) << i;
    before = step;
  }
}

}  // namespace
}  // namespace graphrun::testing
