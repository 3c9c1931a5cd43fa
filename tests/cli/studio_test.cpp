// The studio in one process with the test: every route, from strangers and from the page.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/command_line/verbs.h"
#include "cli/studio/routes.h"
#include "graphrun/error.h"
#include "graphrun/json_string.h"
#include "graphrun/run_folder.h"
#include "support/http_client.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {
namespace {

namespace fs = std::filesystem;
using test::HttpClient;

constexpr const char* kXor = R"json({
  "format": 1,
  "name": "xor",
  "data": {"train": {"inline": {"x": [[0, 0], [0, 1], [1, 0], [1, 1]], "y": [0, 1, 1, 0]}}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "graph": [
    {"name": "h", "op": "dense", "inputs": ["x"], "units": 4, "activation": "tanh"},
    {"name": "y_hat", "op": "dense", "inputs": ["h"], "units": 1},
    "loss = mean(square(y_hat - y))"
  ],
  "outputs": {"y_hat": "y"},
  "train": {
  "minimize" : "loss", "metrics" : ["mse"], "optimizer" : {"sgd" : {"lr" : 0.1}}, "epochs" : 500, "seed" : 1
}
})json";

// A run that only the page ends.
std::string endless() {
  std::string text = kXor;
  return text.replace(text.find("500"), 3, "2000000000");
}

class StudioRoutes : public ::testing::Test {
 protected:
  void start(const std::string& model = kXor) {
    arguments_.verb = "studio";
    arguments_.model = own_.write("xor.json", model);
    studio_.emplace(arguments_);
    stop_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] {
      studio_->server.run(stop_, [this](const studio::Request& request, studio::Ticket ticket) {
        return studio_->answer(request, ticket);
      });
    });
  }
  ~StudioRoutes() override {
    if (!studio_) return;
    const std::uint64_t once = 1;
    EXPECT_EQ(::write(stop_, &once, sizeof once), static_cast<ssize_t>(sizeof once));
    thread_.join();
    ::close(stop_);
  }

  int port() const { return studio_->server.port(); }
  std::string host() const { return fmt::format("127.0.0.1:{}", port()); }
  std::string cookie() const {
    const std::string url = studio_->server.access().url();
    return fmt::format("Cookie: graphrun_studio_{}={}\r\n", port(), url.substr(url.find('=') + 1));
  }
  static std::string request(std::string_view method, const std::string& path, const std::string& headers,
                             const std::string& body = {}) {
    const std::string length =
        method == "POST" ? fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size()) : "";
    return fmt::format("{} {} HTTP/1.1\r\n{}{}\r\n{}", method, path, headers, length, body);
  }
  std::string said(const std::string& request) const {
    HttpClient client(port());
    client.say(request);
    return client.all();
  }
  // What the page would hear: status and body.
  std::pair<int, std::string> asked(std::string_view method, const std::string& path,
                                    const std::string& body = {}) const {
    const std::string answer =
        said(request(method, path, fmt::format("Host: {0}\r\nOrigin: http://{0}\r\n{1}", host(), cookie()), body));
    if (answer.size() < 12) return {0, answer};
    return {std::stoi(answer.substr(9, 3)), answer.substr(std::min(answer.find("\r\n\r\n") + 4, answer.size()))};
  }
  std::pair<int, std::string> post(const std::string& path,
                                   const std::vector<std::pair<std::string, std::string>>& values) const {
    std::string body;
    for (const auto& [name, value] : values)
      body += fmt::format("{}{}:{}", body.empty() ? "{" : ",", json_string(name), json_string(value));
    return asked("POST", path, body.empty() ? "{}" : body + "}");
  }

  // Until the studio says this; what it said. Fails after 20 seconds.
  std::string heard(const std::string& wanted) const {
    HttpClient client(port());
    client.say(request("GET", "/api/events", fmt::format("Host: {}\r\n{}", host(), cookie())));
    const std::string text = client.until(wanted);
    EXPECT_NE(text.find(wanted), std::string::npos) << text.substr(text.size() > 2000 ? text.size() - 2000 : 0);
    return text;
  }
  static std::string word_after(const std::string& text, const std::string& before) {
    const std::size_t at = text.rfind(before);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + before.size();
    return text.substr(begin, text.find('"', begin) - begin);
  }

  const test::TemporaryFolder own_;
  cli::Arguments arguments_;
  std::optional<cli::Studio> studio_;
  int stop_ = -1;
  std::thread thread_;
};

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
  EXPECT_EQ(asked("GET", "/api/values").first, 200);  // of the weights as they are
  post("/api/control", {{"action", "resume"}});
  events.until(R"("state":"running")");
  post("/api/control", {{"action", "stop"}});
  heard(R"("state":"stopped")");
  post("/api/control", {{"action", "reset"}});
  heard(R"("state":"idle")");
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=weights").first, 422);
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=weights&training=0").first, 204);
}

// A number that is changed while it trains: the run tells so, and its replay has the same weights.
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
  const std::vector<ChangedNumber> changes = read_changes(run);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].from, 0.1);
  EXPECT_EQ(changes[1].to, 0.025);
  EXPECT_GE(changes[1].step, changes[0].step);
  EXPECT_NE(asked("GET", "/api/runs").second.find("lr 0.1 -> 0.05 after step"), std::string::npos);
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
  const char* const words[] = {"graphrun", "replay", run.c_str()};
  const cli::Arguments arguments = cli::parse(3, words);
  cli::Diagnostics quiet(cli::Diagnostics::Format::text, true);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(cli::find_verb("replay")->run(arguments, quiet), cli::kDone);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("and at the end"), std::string::npos);
  fs::remove(fs::path(run) / "changes.json");
  EXPECT_THROW(cli::find_verb("replay")->run(arguments, quiet), Error);
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

TEST_F(StudioRoutes, OpensNoFileBeyondItsFolder) {
  start();
  const test::TemporaryFolder other;
  const std::string secret = other.write("secret.csv", "a,b\n1,2\n3,4\n5,6\n");
  fs::create_symlink(secret, own_.path() / "link.csv");
  const auto model = [](const std::string& csv) {
    return fmt::format(
        R"json({{"format":1,"name":"m","data":{{"train":{{"csv":{},"x":["a"],"y":"b"}}}},)json"
        R"json("inputs":{{"x":["batch",1],"y":["batch",1]}},"graph":[{{"name":"p","op":"dense","inputs":["x"],"units":1}},)json"
        R"json("loss = mean(square(p - y))"],"outputs":{{"p":"y"}},)json"
        R"json("train":{{"minimize":"loss","optimizer":{{"sgd":{{"lr":0.1}}}},"epochs":1}}}})json",
        json_string(csv));
  };
  const std::string up = fs::relative(secret, own_.path()).string();
  for (const std::string& path : {secret, up, std::string("link.csv")}) {
    const auto [status, answer] = post("/api/train", {{"text", model(path)}});
    EXPECT_EQ(status, 422) << path;
    EXPECT_NE(answer.find("studio.outside"), std::string::npos) << answer;
    for (const char* view : {"/api/plan", "/api/values"}) EXPECT_EQ(asked("GET", view).first, 422) << view << path;
    EXPECT_EQ(post("/api/verify", {}).first, 422) << path;
    EXPECT_EQ(post("/api/open", {{"name", path}}).first, 422) << path;
    EXPECT_EQ(post("/api/init", {{"table", path}, {"target", "b"}}).first, 422) << path;
    EXPECT_EQ(post("/api/save", {{"name", path + ".json"}, {"text", "{}"}}).first == 200, path == "link.csv") << path;
  }
  EXPECT_EQ(asked("GET", "/api/run-file?run=..&file=model.json").first, 422);
  EXPECT_EQ(asked("GET", "/api/run-file?run=a%20b/..&file=model.json").first, 422);
  EXPECT_EQ(asked("GET", "/api/run-file?run=0001&file=../../xor.json").first, 422);
  own_.write("near.csv", "a,b\n1,2\n3,4\n5,6\n");
  EXPECT_EQ(post("/api/train", {{"text", model("near.csv")}}).first, 200);
  heard(R"("state":"done")");
}

TEST_F(StudioRoutes, TablesThatAreDropped) {
  start();
  EXPECT_EQ(post("/api/data", {{"name", "empty.csv"}, {"text", ""}}).first, 422);
  EXPECT_EQ(post("/api/data", {{"name", "a.png"}, {"text", "x"}}).first, 422);
  EXPECT_NE(post("/api/data", {{"name", "../../t.csv"}, {"text", "a,b\n1,2\n"}}).second.find(R"("name":"t.csv")"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(own_.path() / "t.csv"));
  EXPECT_NE(post("/api/data", {{"name", "t.csv"}, {"text", "a,b\n1,2\n"}}).second.find(R"("name":"t.csv")"),
            std::string::npos);
  EXPECT_NE(post("/api/data", {{"name", "t.csv"}, {"text", "c,d\n1,2\n"}}).second.find(R"("name":"t-2.csv")"),
            std::string::npos);
  const std::string head = fmt::format(
      "Host: {0}\r\nOrigin: http://{0}\r\n{1}Content-Type: application/json\r\nContent-Length: 104857600\r\n", host(),
      cookie());
  EXPECT_TRUE(said("POST /api/data HTTP/1.1\r\n" + head + "\r\n").starts_with("HTTP/1.1 413 "));
  std::string rows = "a,b\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{}\n", i * 7 % 17, i * 14 % 34 + 1);
  post("/api/data", {{"name", "rows.csv"}, {"text", rows}});
  EXPECT_EQ(post("/api/init", {{"table", "rows.csv"}, {"target", "b"}}).first, 200);
  EXPECT_EQ(post("/api/init", {{"table", "rows.csv"}, {"target", "q"}}).first, 422);
}

// As the command line says it: place, pointer, message.
TEST_F(StudioRoutes, TellsOfMistakesWhereTheyAre) {
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

// A folder that cannot be written: it trains, and says that the run is not kept.
TEST_F(StudioRoutes, TrainsWhereNothingCanBeKept) {
  start();
  own_.write("runs", "no folder");
  post("/api/train", {{"text", kXor}});
  const std::string text = heard(R"("state":"done")");
  EXPECT_NE(text.find("this run is not kept"), std::string::npos) << text;
}

TEST_F(StudioRoutes, AThousandRunsAreQuick) {
  start();
  for (int i = 1; i <= 1000; ++i) {
    const fs::path folder = own_.path() / "runs" / fmt::format("{:04}", i);
    fs::create_directories(folder);
    std::ofstream(folder / "run.json")
        << R"({"command":["graphrun"],"folder":"/","model_file":"xor.json","version":"","executor":"cpu"})";
    std::ofstream(folder / "model.json") << kXor;
    std::ofstream(folder / "result.json") << fmt::format(
        R"({{"model":"xor","train":{{"loss":{}}},"validation":null,"test":null,"interrupted":false,"weights_hash":"{:016x}"}})",
        1.0 / i, i);
  }
  asked("GET", "/api/runs");
  double least = 1;  // of a few: the machine may be busy
  std::string answer;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    answer = asked("GET", "/api/runs").second;
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  EXPECT_NE(answer.find("00000000000003e8"), std::string::npos);
#ifdef __OPTIMIZE__
  EXPECT_LT(least, 0.1);
#endif
  // What has changed is seen: a result that is another, a run that is gone, one that is new.
  const fs::path runs = own_.path() / "runs";
  std::ofstream(runs / "0007" / "result.json")
      << R"({"model":"xor","train":{"loss":0.125},"interrupted":true,"weights_hash":"feedfacefeedface"})";
  fs::remove_all(runs / "1000");
  fs::copy(runs / "0001", runs / "9999");
  answer = asked("GET", "/api/runs").second;
  EXPECT_NE(answer.find("feedfacefeedface"), std::string::npos);
  EXPECT_EQ(answer.find("00000000000003e8"), std::string::npos);
  EXPECT_NE(answer.find(R"("run":"9999")"), std::string::npos);
}

// Pages that go while it trains end nothing, and the end waits for none that stays.
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
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t once = 1;
  ASSERT_EQ(::write(stop_, &once, sizeof once), static_cast<ssize_t>(sizeof once));
  thread_.join();
  studio_.reset();  // ends the training and keeps it
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::close(stop_);
#ifdef __OPTIMIZE__
  EXPECT_LT(seconds, 0.2);
#else
  EXPECT_LT(seconds, 5);
#endif
  EXPECT_TRUE(fs::exists(own_.path() / "runs" / "0001" / "result.json"));
}

// What a model of classes over two inputs is watched by.
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
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=misclassified").first, 422);  // its rows are no pictures
  EXPECT_EQ(asked("GET", "/api/picture.svg?what=surface&split=nowhere").first, 422);
}

// Time, bytes and error of each value; executors by their names only.
TEST_F(StudioRoutes, TellsWhatEachValueCosts) {
  start();
  const auto [status, text] = asked("GET", "/api/costs?executor=cpu");
  ASSERT_EQ(status, 200) << text;
  for (const char* name : {"h", "y_hat", "loss", "h.W:gradient"}) {
    const std::size_t at = text.find(fmt::format(R"({{"name":"{}","seconds":)", name));
    ASSERT_NE(at, std::string::npos) << name << text;
    const std::string node = text.substr(at, text.find('}', at) - at);
    const std::size_t seconds = node.find("\"seconds\":") + 10, ulp = node.find("\"ulp\":") + 6;
    EXPECT_GT(std::stod(node.substr(seconds)), 0) << node;
    EXPECT_LT(std::stod(node.substr(seconds)), 1) << node;
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
TEST(StoredChanges, AreReadOrRefused) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(read_changes(folder.path().string()).empty());
  folder.write("changes.json",
               R"([{"step":3,"number":"lr","from":0.1,"to":0.05},{"step":3,"number":"l2","from":1,"to":0}])");
  const std::vector<ChangedNumber> changes = read_changes(folder.path().string());
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(to_string(changes[0]), "lr 0.1 -> 0.05 after step 3");
  for (const char* bad : {"{}", "[1]", "[", R"([{"step":-1,"number":"lr","from":1,"to":1}])",
                          R"([{"step":1e300,"number":"lr","from":1,"to":1}])", R"([{"step":1,"number":"lr","from":1}])",
                          R"([{"step":1,"number":"lr","from":1,"to":"x"}])",
                          R"([{"step":2,"number":"lr","from":1,"to":1},{"step":1,"number":"lr","from":1,"to":1}])"}) {
    folder.write("changes.json", bad);
    EXPECT_THROW(read_changes(folder.path().string()), Error) << bad;
  }
}

}  // namespace
}  // namespace graphrun::testing
