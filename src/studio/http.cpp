#include "studio/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "graphrun/error.h"

namespace graphrun::studio {
namespace {

constexpr std::size_t kMaxPathBytes = 2048;

bool is_token(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_letter || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_token(c); });
}
// Accepts visible characters, spaces, tabs and bytes above ASCII.
bool is_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Rejected {
  int status;
  std::string reason;
};

// Accepts only normal form: no empty or dot segments and no encoded slashes, so that each path has one spelling.
std::string plain_path(std::string_view text) {
  const std::optional<std::string> path = percent_decoded(text, false);
  if (!path || path->empty() || path->front() != '/') throw Rejected{400, "the path is malformed"};
  if (std::count(text.begin(), text.end(), '/') != std::count(path->begin(), path->end(), '/') ||
      path->find('\\') != std::string::npos)
    throw Rejected{400, "a slash of the path is encoded"};
  for (std::size_t at = 0; at < path->size();) {
    const std::size_t end = std::min(path->find('/', at + 1), path->size());
    const std::string_view segment = std::string_view(*path).substr(at + 1, end - at - 1);
    if (segment == "." || segment == ".." || (segment.empty() && path->size() > 1))
      throw Rejected{400, "a segment of the path is empty or dots"};
    at = end;
  }
  return *path;
}

std::vector<std::pair<std::string, std::string>> query_of(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto name = percent_decoded(part.substr(0, equals), true);
    const auto value = percent_decoded(part.substr(std::min(equals + 1, part.size())), true);
    if (!name || !value || query.size() >= kMaxHeaders) throw Rejected{400, "the query is malformed"};
    query.emplace_back(*name, *value);
  }
  return query;
}

void take_request_line(std::string_view line, Request& request) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) throw Rejected{400, "the request line is malformed"};
  request.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (!is_token(request.method)) throw Rejected{400, "the method is not a token"};
  if (!version.starts_with("HTTP/")) throw Rejected{400, "the request line is malformed"};
  if (version != "HTTP/1.1") throw Rejected{505, "only HTTP/1.1 is supported"};
  if (target.size() > kMaxPathBytes) throw Rejected{414, "the path is too long"};
  const bool plain = std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!plain || target.find('#') != std::string_view::npos) throw Rejected{400, "the path is malformed"};
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = plain_path(target.substr(0, mark));
  request.query = query_of(target.substr(std::min(mark + 1, target.size())));
}

// Headers that are stored in the Request.
struct KnownHeader {
  std::string_view name;
  std::string Request::*value;
};
constexpr KnownHeader kKnown[] = {{"host", &Request::host},
                                  {"origin", &Request::origin},
                                  {"cookie", &Request::cookie},
                                  {"sec-fetch-site", &Request::site},
                                  {"content-type", &Request::content_type}};

class Headers {
 public:
  explicit Headers(Request& request) : request_(request) {}

  void take(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') throw Rejected{400, "a header is folded"};
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      throw Rejected{400, "a header has no name"};
    const std::string name = lower(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!is_value(value)) throw Rejected{400, "a header holds a control character"};
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end() && is_single(name))
      throw Rejected{400, fmt::format("the header {} is there twice", name)};
    if (seen_.size() >= kMaxHeaders) throw Rejected{431, "there are too many headers"};
    seen_.push_back(name);
    for (const KnownHeader& known : kKnown) {
      if (known.name == name) request_.*known.value = value;
    }
    if (name == "content-length") take_length(value);
    if (name == "expect" && lower(value) != "100-continue") throw Rejected{400, "unsupported Expect header"};
    if (name == "expect") request_.expects_continue = true;
  }

  void finish() {
    request_.has_origin = has("origin");
    if (!has("host") || request_.host.empty()) throw Rejected{400, "there is no Host"};
    if (has("transfer-encoding")) {
      if (has("content-length")) throw Rejected{400, "both Transfer-Encoding and Content-Length"};
      throw Rejected{501, "Transfer-Encoding is not taken"};
    }
    if (request_.method == "POST" && !has("content-length")) throw Rejected{411, "there is no Content-Length"};
    if (request_.method == "GET" && request_.content_length > 0) throw Rejected{400, "a GET has no body"};
  }

 private:
  bool has(std::string_view name) const { return std::find(seen_.begin(), seen_.end(), name) != seen_.end(); }
  static bool is_single(std::string_view name) {
    return name == "content-length" || name == "transfer-encoding" || name == "expect" ||
           std::any_of(std::begin(kKnown), std::end(kKnown), [&](const auto& one) { return one.name == name; });
  }
  void take_length(std::string_view value) {
    if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos)
      throw Rejected{400, "Content-Length is not a number"};
    const std::optional<std::uint64_t> length = parse_number<std::uint64_t>(value);
    if (!length || *length > kMaxBodyBytes)
      throw Rejected{413, fmt::format("a request has at most {} MiB", kMaxBodyBytes >> 20)};
    request_.content_length = *length;
  }

  Request& request_;
  std::vector<std::string> seen_;
};

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    made += c;
  }
  return made;
}

std::string percent_encoded(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").find(c) != std::string_view::npos;
    made += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return made;
}

ParsedHead parse_head(std::string_view bytes) {
  ParsedHead parsed;
  const std::size_t end = bytes.substr(0, kMaxHeadBytes).find("\r\n\r\n");
  try {
    const std::string_view head = bytes.substr(0, end == std::string_view::npos ? kMaxHeadBytes : end + 2);
    for (std::size_t i = 0; i < head.size(); ++i) {
      if (head[i] == '\0' || (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) ||
          (head[i] == '\r' && i + 1 < head.size() && head[i + 1] != '\n'))
        throw Rejected{400, "a line does not end with CR LF"};
    }
    if (end == std::string_view::npos) {
      if (bytes.size() >= kMaxHeadBytes) throw Rejected{431, "the head is too long"};
      return parsed;
    }
    std::string_view rest = head;
    std::size_t line_end = rest.find("\r\n");
    take_request_line(rest.substr(0, line_end), parsed.request);
    Headers headers(parsed.request);
    for (rest.remove_prefix(line_end + 2); !rest.empty(); rest.remove_prefix(line_end + 2)) {
      line_end = rest.find("\r\n");
      headers.take(rest.substr(0, line_end));
    }
    headers.finish();
    parsed.bytes = end + 4;
  } catch (const Rejected& rejected) {
    parsed.status = rejected.status;
    parsed.reason = rejected.reason;
  }
  return parsed;
}

std::string to_string(const Response& response, bool length) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n",
      response.status, reason_of(response.status), response.type);
  // An SVG picture has inline styles. It needs no scripts.
  text += response.type == "image/svg+xml"
              ? "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
              : "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
                "'none'\r\n";
  for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (length) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  return text + "\r\n" + response.body;
}

Response rejection(int status, std::string_view reason) {
  return {status, "application/json", fmt::format("{{\"error\":{}}}", json_string(reason)), {}};
}

}  // namespace graphrun::studio
