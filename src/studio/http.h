// http.h: the head of an HTTP/1.1 request, and what is answered.
// Contract: parse_head() is a pure function of bytes that anybody may have sent. It takes what a browser says and
// refuses the rest, most of all what two readers could understand in two ways: lines that end with a bare LF, folded
// lines, a space before a colon, Host or Content-Length twice, Transfer-Encoding, a path that is not written plainly.
// Leaves to others: who may ask (access.h), the connection (server.h), what is answered (routes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graphrun::studio {

inline constexpr std::size_t kMaxHeadBytes = 16 << 10, kMaxHeaders = 64;
inline constexpr std::uint64_t kMaxBodyBytes = 32 << 20;

struct Request {
  std::string method;
  std::string path;                                        // decoded: "/", "/api/train"
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  std::string host, origin, site, cookie, content_type;    // of headers; empty: it is not there
  bool has_origin = false;
  std::uint64_t content_length = 0;
  bool expects_continue = false;
  std::string body;  // which the server reads

  std::string_view argument(std::string_view name) const {  // "" when there is none
    for (const auto& [key, value] : query) {
      if (key == name) return value;
    }
    return {};
  }
};

struct ParsedHead {
  std::size_t bytes = 0;  // of the head, its empty line included; 0: it is not whole yet, or bad
  int status = 0;         // why it is refused: 400, 411, 413, 414, 431, 501, 505; 0: it is not
  std::string reason;
  Request request;
};

ParsedHead parse_head(std::string_view bytes);

// "%2e" as "."; nothing where it is no such text, or would hold a control character.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

std::string percent_encoded(std::string_view text);

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // beside those that every answer has
};

// Head and body; `length` is false for a stream, which ends when the connection does.
std::string to_string(const Response& response, bool length = true);
Response rejection(int status, std::string_view reason);  // as JSON: {"error": reason}

}  // namespace graphrun::studio
