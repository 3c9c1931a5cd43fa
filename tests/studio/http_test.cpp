#include "studio/http.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "graphrun/error.h"
#include "studio/access.h"
#include "studio/body.h"

namespace graphrun::studio {
namespace {

std::string get(const std::string& path, const std::string& headers = "Host: 127.0.0.1:80\r\n") {
  return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n";
}
std::string post(const std::string& headers) {
  return "POST /api/check HTTP/1.1\r\nHost: 127.0.0.1:80\r\n" + headers + "\r\n";
}
int status(const std::string& bytes) {
  return parse_head(bytes).status;
}

TEST(Http, TakesWhatABrowserSays) {
  const std::string text = get("/api/picture.svg?what=surface&split=a%20b+c&x",
                               "Host: 127.0.0.1:8000\r\nCookie: a=b; c=d\r\nOrigin: http://127.0.0.1:8000\r\n"
                               "Sec-Fetch-Site: same-origin\r\nAccept: */*\r\n");
  const ParsedHead parsed = parse_head(text + "more");
  ASSERT_EQ(parsed.status, 0) << parsed.reason;
  EXPECT_EQ(parsed.bytes, text.size());
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/api/picture.svg");
  EXPECT_EQ(parsed.request.argument("what"), "surface");
  EXPECT_EQ(parsed.request.argument("split"), "a b c");
  EXPECT_EQ(parsed.request.argument("x"), "");
  EXPECT_EQ(parsed.request.host, "127.0.0.1:8000");
  EXPECT_EQ(parsed.request.cookie, "a=b; c=d");
  EXPECT_TRUE(parsed.request.has_origin);
  EXPECT_EQ(parsed.request.site, "same-origin");
  const ParsedHead posted =
      parse_head(post("Content-Length: 12\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(posted.request.content_length, 12u);
  EXPECT_EQ(posted.request.content_type, "application/json");
  EXPECT_TRUE(posted.request.expects_continue);
}

TEST(Http, WaitsForTheRestOfAHead) {
  const std::string whole = get("/");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const ParsedHead parsed = parse_head(whole.substr(0, n));
    EXPECT_EQ(parsed.status, 0) << n << ": " << parsed.reason;
    EXPECT_EQ(parsed.bytes, 0u) << n;
  }
}

// Rejects ambiguous requests: parsers that read them differently allow request smuggling.
TEST(Http, RejectsWhatCouldBeSmuggled) {
  EXPECT_EQ(status(post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status(post("Transfer-Encoding: chunked\r\n")), 501);
  EXPECT_EQ(status(post("Content-Length: 3\r\nContent-Length: 3\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\r\nContent-Length: 4\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3, 3\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: +3\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 0x3\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: -1\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length:\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length : 3\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\r\nX: a\r\n b\r\n")), 400);  // folded
  EXPECT_EQ(status(post("Content-Length: 3\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\rX: y\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\r\nHost: other\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\r\nOrigin: a\r\nOrigin: b\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 3\r\nX: a" + std::string(1, '\0') + "b\r\n")), 400);
  EXPECT_EQ(status(post("")), 411);
  EXPECT_EQ(status(get("/", "Host: a\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\nHost: a\n\n"), 400);
}

TEST(Http, RejectsWhatIsTooLarge) {
  EXPECT_EQ(status(post("Content-Length: 33554433\r\n")), 413);
  EXPECT_EQ(status(post("Content-Length: 99999999999999999999999\r\n")), 413);
  EXPECT_EQ(status(get("/" + std::string(3000, 'a'))), 414);
  EXPECT_EQ(status(get("/", "Host: a\r\nX: " + std::string(kMaxHeadBytes, 'x') + "\r\n")), 431);
  EXPECT_EQ(status(std::string(kMaxHeadBytes, 'x')), 431);
  std::string many = "Host: a\r\n";
  for (int i = 0; i < 70; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(status(get("/", many)), 431);
}

TEST(Http, KnowsOneSpellingOfAPath) {
  EXPECT_EQ(parse_head(get("/a%20b")).request.path, "/a b");
  for (const char* path : {"/../etc/passwd",
                           "/a/../b",
                           "/./a",
                           "/%2e%2e/a",
                           "/a%2fb",
                           "/a%5cb",
                           "/a\\b",
                           "//a",
                           "/a//b",
                           "/a/",
                           "a",
                           "*",
                           "http://127.0.0.1/",
                           "/%",
                           "/%4",
                           "/%zz",
                           "/%00",
                           "/%0a",
                           "/a#b",
                           "/a b",
                           "/?a=%1f"})
    EXPECT_EQ(status(get(path)), 400) << path;
}

TEST(Http, RejectsOtherLines) {
  EXPECT_EQ(status("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status("GET / HTTP/2\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status("GET /\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status("\r\n\r\n"), 400);
  EXPECT_EQ(status("G@T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status(get("/", "Host:\r\n")), 400);
  EXPECT_EQ(status(get("/", "Host: a\r\n: b\r\n")), 400);
  EXPECT_EQ(status(get("/", "Host: a\r\nExpect: dinner\r\n")), 400);
}

TEST(Http, AnswersForbidWhatThePageDoesNotNeed) {
  const std::string page = to_string(Response{200, "text/html", "x", {}});
  for (const char* line : {"HTTP/1.1 200 OK\r\n", "Content-Security-Policy: default-src 'self';",
                           "frame-ancestors 'none'", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                           "Content-Length: 1\r\n", "Connection: close"})
    EXPECT_NE(page.find(line), std::string::npos) << line;
  EXPECT_EQ(rejection(404, "no \"x\"").body, R"({"error":"no \"x\""})");
}

// 100,000 mutated requests: the parser accepts or rejects each, or waits for more. Sanitizers catch reads out of
// bounds.
TEST(Http, MutatedRequestsDoNoHarm) {
  const std::string seeds[] = {
      get("/api/picture.svg?what=surface&split=a%20b+c",
          "Host: 127.0.0.1:8000\r\nCookie: graphrun_studio_8000=abc\r\n"),
      post("Content-Length: 12\r\nContent-Type: application/json\r\nOrigin: http://127.0.0.1:80\r\n") +
          R"({"a":"\u00e9"})",
      get("/", "Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nExpect: 100-continue\r\n")};
  const std::string parts[] = {"\r\n",        "\n",
                               "\r",          ":",
                               " ",           "%",
                               "%2e",         "%00",
                               "..",          "/",
                               "?",           "&",
                               "=",           "Content-Length: 5\r\n",
                               "Host: x\r\n", std::string(1, '\0'),
                               "\xff",        "99999999999999999999",
                               "\r\n\r\n"};
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const Access access(8000);
  std::size_t taken = 0, rejected = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes = seeds[below(std::size(seeds))];
    for (std::size_t n = 1 + below(6); n-- > 0;) {
      const std::size_t at = below(bytes.size() + 1);
      switch (below(4)) {
        case 0:
          bytes.insert(at, parts[below(std::size(parts))]);
          break;
        case 1:
          bytes.erase(at, 1 + below(8));
          break;
        case 2:
          if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size() + 1), below(40)));
      }
    }
    const ParsedHead parsed = parse_head(bytes);
    ASSERT_LE(parsed.bytes, bytes.size());
    ASSERT_TRUE(parsed.status == 0 || (parsed.status >= 400 && parsed.status <= 505)) << parsed.status;
    if (parsed.status != 0) {
      ++rejected;
      ASSERT_EQ(parsed.bytes, 0u);
      ASSERT_FALSE(parsed.reason.empty());
      continue;
    }
    if (parsed.bytes == 0) continue;
    ++taken;
    ASSERT_EQ(access.judge(parsed.request), Access::Verdict::stranger);
    ASSERT_LE(parsed.request.content_length, kMaxBodyBytes);
    ASSERT_EQ(parsed.request.path.front(), '/');
    ASSERT_EQ(parsed.request.path.find(".."), parsed.request.path.find("..", 1));
    try {
      const Body body(std::string_view(bytes).substr(parsed.bytes));
    } catch (const Error&) {
    }
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(rejected, 10'000u);
}

// ---- access

Request asked(const std::string& method, const std::string& host, const std::string& cookie,
              const std::string& origin = {}) {
  Request request;
  request.method = method;
  request.path = "/api/model";
  request.host = host;
  request.cookie = cookie;
  request.origin = origin;
  request.has_origin = !origin.empty();
  return request;
}

TEST(Access, KnowsTheCookieOnItsOwnPageOnly) {
  using Verdict = Access::Verdict;
  const Access access(8000);
  const std::string token = access.url().substr(access.url().find('=') + 1), own = "graphrun_studio_8000=" + token;
  ASSERT_EQ(token.size(), 32u);
  EXPECT_NE(Access(8000).url(), access.url());
  EXPECT_NE(access.cookie().find("; HttpOnly; SameSite=Strict"), std::string::npos);
  const std::string host = "127.0.0.1:8000", page = "http://127.0.0.1:8000";
  EXPECT_EQ(access.judge(asked("GET", host, own)), Verdict::known);
  EXPECT_EQ(access.judge(asked("GET", host, "a=b; " + own + "; c=d")), Verdict::known);
  EXPECT_EQ(access.judge(asked("GET", "localhost:8000", own)), Verdict::known);
  EXPECT_EQ(access.judge(asked("POST", host, own, page)), Verdict::known);
  for (const std::string& cookie :
       {std::string(), std::string("graphrun_studio_8000="), own + "0", own.substr(0, own.size() - 1), own + "; " + own,
        "graphrun_studio_8001=" + token, "x" + own})
    EXPECT_EQ(access.judge(asked("GET", host, cookie)), Verdict::stranger) << cookie;
  for (const char* other : {"evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "localhost",
                            "127.0.0.1:8000.evil.example", "0.0.0.0:8000", "[::1]:8000"})
    EXPECT_EQ(access.judge(asked("GET", other, own)), Verdict::stranger) << other;
  for (const char* origin :
       {"http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:8001", "http://localhost:8000"}) {
    EXPECT_EQ(access.judge(asked("POST", host, own, origin)), Verdict::stranger) << origin;
    EXPECT_EQ(access.judge(asked("GET", host, own, origin)), Verdict::stranger) << origin;
  }
  EXPECT_EQ(access.judge(asked("POST", host, own)), Verdict::stranger);  // a browser says where a POST comes from
  Request other_site = asked("GET", host, own);
  other_site.site = "cross-site";
  EXPECT_EQ(access.judge(other_site), Verdict::stranger);
}

TEST(Access, TheTokenOpensTheFirstPageOnly) {
  const Access access(8000);
  Request request = asked("GET", "127.0.0.1:8000", "");
  request.path = "/";
  request.query = {{"token", access.url().substr(access.url().find('=') + 1)}};
  EXPECT_EQ(access.judge(request), Access::Verdict::newcomer);
  request.path = "/api/model";
  EXPECT_EQ(access.judge(request), Access::Verdict::stranger);
  request.path = "/";
  request.query.front().second.back() = 'x';
  EXPECT_EQ(access.judge(request), Access::Verdict::stranger);
  request.query.clear();
  EXPECT_EQ(access.judge(request), Access::Verdict::stranger);
}

// ---- bodies

TEST(Body, ReadsPlainObjects) {
  const Body body(R"( {"text": "a\n\"\u00e9\ud83d\ude00", "n": -1.5e2, "yes": true, "no": null} )");
  EXPECT_EQ(body.text("text"), "a\n\"\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(body.number("n"), -150.0);
  EXPECT_FALSE(body.number("text"));
  EXPECT_EQ(body.text_or("other", "x"), "x");
  EXPECT_THROW(body.text("other"), Error);
  EXPECT_THROW(body.text("n"), Error);
}

TEST(Body, RejectsTheRest) {
  for (const char* text : {"",
                           "[]",
                           "{",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{\"a\":1}x",
                           "{\"a\":[1]}",
                           "{\"a\":{}}",
                           "{\"a\":1,\"a\":2}",
                           "{\"a\":\"",
                           "{\"a\":\"\\",
                           "{\"a\":\"\\u12\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\\udc00\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":nan}",
                           "{\"a\" 1}",
                           "{\"a\":\"\n\"}",
                           "{1:2}"})
    EXPECT_THROW(Body{text}, Error) << text;
  EXPECT_EQ(json_texts(R"({"a": ["b", {"\u002e./c": 1}]})"), (std::vector<std::string>{"a", "b", "../c"}));
}

}  // namespace
}  // namespace graphrun::studio
