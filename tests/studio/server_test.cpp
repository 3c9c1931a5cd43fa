#include "studio/server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "graphrun/error.h"
#include "studio/page.h"
#include "studio/worker.h"
#include "support/http_client.h"

namespace graphrun::studio {
namespace {

using Client = test::HttpClient;

Limits quick() {
  Limits limits;
  limits.connections = 24;
  limits.head_seconds = limits.body_seconds = 0.3;
  limits.write_seconds = 0.5;
  limits.unread_bytes = 1 << 16;
  limits.beat_seconds = 0.1;
  return limits;
}

class StudioServer : public ::testing::Test {
 protected:
  explicit StudioServer(const Limits& limits = quick()) : server_(0, limits) {}
  ~StudioServer() override {
    end();
    ::close(stop_);
  }
  void end() {
    if (!thread_.joinable()) return;
    const std::uint64_t once = 1;
    EXPECT_EQ(::write(stop_, &once, sizeof once), static_cast<ssize_t>(sizeof once));
    thread_.join();
  }
  std::string own() const {
    const std::string url = server_.access().url();
    return "Host: 127.0.0.1:" + std::to_string(server_.port()) + "\r\nCookie: graphrun_studio_" +
           std::to_string(server_.port()) + "=" + url.substr(url.find('=') + 1) +
           "\r\nOrigin: http://127.0.0.1:" + std::to_string(server_.port()) + "\r\n";
  }
  std::string get(const std::string& path) const { return "GET " + path + " HTTP/1.1\r\n" + own() + "\r\n"; }
  std::string post(const std::string& body, const std::string& type = "application/json") const {
    return "POST /echo HTTP/1.1\r\n" + own() + "Content-Type: " + type +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::string asked(const std::string& request) {
    Client client(server_.port());
    client.say(request);
    return client.all();
  }

  Server server_;
  Worker worker_;
  int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::thread thread_{[this] {
    server_.run(stop_, [this](const Request& request, Ticket ticket) -> std::optional<Response> {
      if (request.path == "/events") return Response{200, "text/event-stream", event_text("hello", "1"), {}};
      if (request.path == "/later") {
        worker_.post([this, ticket] { server_.answer(ticket, {200, "text/plain", "later", {}}); });
        return std::nullopt;
      }
      return Response{200, "text/plain", request.path + " " + request.body, {}};
    });
  }};
};

TEST_F(StudioServer, AnswersNowAndLater) {
  EXPECT_TRUE(asked(get("/x")).ends_with("/x "));
  EXPECT_TRUE(asked(post("{}")).ends_with("/echo {}"));
  EXPECT_TRUE(asked(get("/later")).ends_with("later"));
  const std::string large(3 << 20, 'x');
  EXPECT_TRUE(asked(post(large)).ends_with(large));
}

TEST_F(StudioServer, TakesARequestInPieces) {
  Client client(server_.port());
  for (const char c : post("{}")) client.say(std::string(1, c));
  EXPECT_TRUE(client.all().ends_with("/echo {}"));
}

TEST_F(StudioServer, RejectsBeforeItRoutes) {
  const auto is = [&](const std::string& request, const char* status) {
    const std::string answer = asked(request);
    EXPECT_TRUE(answer.starts_with(std::string("HTTP/1.1 ") + status)) << answer;
  };
  is("GET /x HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_.port()) + "\r\n\r\n", "403");
  is("POST /x HTTP/1.1\r\nHost: evil\r\nContent-Length: 1000\r\n\r\n", "403");  // its body is not waited for
  is("DELETE /x HTTP/1.1\r\n" + own() + "\r\n", "405");
  is(post("{}", "text/plain"), "415");
  is(post("{}", "application/x-www-form-urlencoded"), "415");
  is(post("{}") + "GET / HTTP/1.1\r\n\r\n", "400");
  is("nonsense\r\n\r\n", "400");
}

TEST_F(StudioServer, DropsTheSlow) {
  Client head(server_.port()), body(server_.port());
  head.say("GET / HT");
  std::string unfinished = post("{}");
  unfinished.pop_back();
  body.say(unfinished);
  EXPECT_TRUE(head.all().starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(body.all().starts_with("HTTP/1.1 408"));
}

TEST_F(StudioServer, HasRoomForSoManyAndNoMore) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(std::make_unique<Client>(server_.port()));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the silent ones are dropped
  clients.clear();
  EXPECT_TRUE(asked(get("/x")).ends_with("/x "));
}

TEST_F(StudioServer, StreamsToThoseWhoRead) {
  Client reader(server_.port()), sleeper(server_.port());
  reader.say(get("/events"));
  sleeper.say(get("/events"));
  EXPECT_NE(reader.until("data: 1\n\n").find("event: hello"), std::string::npos);
  server_.publish("points", "[2]");
  EXPECT_NE(reader.until("data: [2]\n\n").find("event: points"), std::string::npos);
  EXPECT_NE(reader.until("still here").find(": still here"), std::string::npos);
  // Far more than the sleeper's sockets hold: it is dropped, the other is served.
  const std::string long_one(100'000, 'x');
  for (int i = 0; i < 200; ++i) {
    server_.publish("long", long_one);
    reader.until("xx\n\n");
  }
  server_.publish("end", "3");
  EXPECT_NE(reader.until("data: 3\n\n").find("event: end"), std::string::npos);
  EXPECT_EQ(sleeper.all().find("event: end"), std::string::npos);
}

TEST(Events, KeepTheirLines) {
  EXPECT_EQ(event_text("state", "{\"a\":1\n,\"b\":2}\n"), "event: state\ndata: {\"a\":1\ndata: ,\"b\":2}\n\n");
}

// With clients that it would otherwise wait a day for.
class PatientServer : public StudioServer {
 protected:
  PatientServer() : StudioServer(patient()) {}
  static Limits patient() {
    Limits limits = quick();
    limits.head_seconds = limits.body_seconds = limits.write_seconds = limits.beat_seconds = 86400;
    return limits;
  }
};

TEST_F(PatientServer, EndsAtOnce) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(server_.port()));
    clients.back()->say(get("/events"));
    clients.back()->until("hello");
  }
  Client silent(server_.port());
  silent.say("GET / HT");
  end();
}

TEST_F(StudioServer, APortIsHadOnce) {
  try {
    const Server second(server_.port());
    FAIL() << "the port was given twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "studio.port");
    EXPECT_NE(std::string(error.what()).find("--port 0"), std::string::npos);
  }
}

TEST(Worker, DoesOneAfterTheOther) {
  std::vector<int> done;
  {
    Worker worker;
    for (int i = 0; i < 3; ++i) worker.post([&, i] { done.push_back(i); });
    worker.post([&] {
      worker.post([&] { done.push_back(4); });
      worker.serve(true);
      done.push_back(5);
    });
    while (true) {
      bool last = false;
      std::atomic<bool> seen{false};
      worker.post([&] {
        last = done.size() == 5;
        seen = true;
      });
      while (!seen) std::this_thread::yield();
      if (last) break;
    }
  }
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 4, 5}));
}

TEST(Page, IsSmallAndAsksNobody) {
  std::size_t bytes = 0;
  for (const PageFile& file : kPageFiles) {
    bytes += file.text.size();
    EXPECT_NE(type_of(file.name), "application/octet-stream") << file.name;
    std::string text(file.text);
    for (std::size_t at = text.find("http"); at != std::string::npos; at = text.find("http", at + 1))
      EXPECT_EQ(text.substr(at, 26), "http://www.w3.org/2000/svg") << file.name << ": " << text.substr(at, 60);
    if (file.name != "index.html") continue;
    for (const char* inside : {"<style", " style=", " onclick=", "javascript:"})
      EXPECT_EQ(text.find(inside), std::string::npos) << inside;
  }
  EXPECT_GT(bytes, 10'000u);
  EXPECT_LE(bytes, 200'000u);
}

}  // namespace
}  // namespace graphrun::studio
