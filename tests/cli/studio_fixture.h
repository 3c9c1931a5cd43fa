// studio_fixture.h: the studio in one process with the test, and a client that asks what its page would.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/command_line/verbs.h"
#include "cli/studio/routes.h"
#include "graphrun/error.h"
#include "support/http_client.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {
namespace fs = std::filesystem;
using test::HttpClient;

inline constexpr const char* kXor = R"json({
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
inline std::string endless() {
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
  // Response to the page: status and body.
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
    std::string text = client.until(wanted);
    for (const std::size_t at = text.find(wanted);
         at != std::string::npos && text.find("\n\n", at) == std::string::npos;) {
      const std::string rest = client.until("\n");  // until the end of the event
      if (rest.empty()) break;
      text += rest;
    }
    EXPECT_NE(text.find(wanted), std::string::npos) << text.substr(text.size() > 2000 ? text.size() - 2000 : 0);
    return text;
  }
  static std::string word_after(const std::string& text, const std::string& before) {
    const std::size_t at = text.rfind(before);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + before.size();
    return text.substr(begin, text.find('"', begin) - begin);
  }

  static std::string replayed(const std::string& run) {
    const char* const words[] = {"graphrun", "replay", run.c_str()};
    const cli::Arguments arguments = cli::parse(3, words);
    cli::Diagnostics quiet(cli::Diagnostics::Format::text, true);
    ::testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(cli::find_verb("replay")->run(arguments, quiet), cli::kDone);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }
  static void expect_replayed(const std::string& run, const std::string& how) {
    const std::string text = replayed(run);
    EXPECT_NE(text.find(how), std::string::npos) << text;
  }

  const test::TemporaryFolder own_;
  cli::Arguments arguments_;
  std::optional<cli::Studio> studio_;
  int stop_ = -1;
  std::thread thread_;
};

}  // namespace graphrun::testing
