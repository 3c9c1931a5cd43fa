// http.h: head of an HTTP/1.1 request, and responses.
// Contract: parse_head() is a pure function of untrusted bytes. It accepts requests as browsers send them and rejects
// everything else, above all ambiguous input: lines that end with a bare LF, folded lines, a space before a colon, a
// repeated Host or Content-Length, Transfer-Encoding, a path that is not in normal form.
// Not handled here: access control (access.h), the connection (server.h), answers (routes).
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
  std::string host, origin, site, cookie, content_type;    // headers; empty if absent
  bool has_origin = false;
  std::uint64_t content_length = 0;
  bool expects_continue = false;
  std::string body;  // read by the server

  std::string_view argument(std::string_view name) const {  // "" if absent
    for (const auto& [key, value] : query) {
      if (key == name) return value;
    }
    return {};
  }
};

struct ParsedHead {
  std::size_t bytes = 0;  // size of the head with its empty line; 0: incomplete or rejected
  int status = 0;         // reason for rejection: 400, 411, 413, 414, 431, 501, 505; 0: accepted
  std::string reason;
  Request request;
};

ParsedHead parse_head(std::string_view bytes);

// Decodes "%2e" to "."; empty if the text is malformed or contains a control character.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

std::string percent_encoded(std::string_view text);

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // in addition to those of every response
};

// Head and body. `length` is false for a stream, which ends when the connection closes.
std::string to_string(const Response& response, bool length = true);
Response rejection(int status, std::string_view reason);  // as JSON: {"error": reason}

}  // namespace graphrun::studio
