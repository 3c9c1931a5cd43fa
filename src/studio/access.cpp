#include "studio/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstddef>

#include "graphrun/error.h"

namespace graphrun::studio {
namespace {

// Constant-time comparison: its duration does not reveal how many characters match.
bool is_same(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned>(static_cast<unsigned char>(other[i]));
  return difference == 0;
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ErrorKind::run, "studio.random", "the system gives no random bytes for the studio's token");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Value of the named cookie; "" if it is absent or repeated.
std::string_view cookie_value(std::string_view cookies, std::string_view name) {
  std::string_view found;
  int count = 0;
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') {
      found = one.substr(name.size() + 1);
      ++count;
    }
  }
  return count == 1 ? found : std::string_view();
}

}  // namespace

Access::Access(int port) : port_(port), token_(random_token()), cookie_name_(fmt::format("graphrun_studio_{}", port)) {}

std::string Access::url() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", port_, token_);
}

std::string Access::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name_, token_);
}

Access::Verdict Access::judge(const Request& request) const {
  const bool ours =
      request.host == fmt::format("127.0.0.1:{}", port_) || request.host == fmt::format("localhost:{}", port_);
  if (!ours) return Verdict::stranger;
  if (request.has_origin && request.origin != "http://" + request.host) return Verdict::stranger;
  const bool changes = request.method != "GET";
  if (changes && !request.has_origin) return Verdict::stranger;
  const bool arrives = request.method == "GET" && request.path == "/";  // follows a link, possibly from another site
  if (!request.site.empty() && request.site != "same-origin" && request.site != "none" && !arrives)
    return Verdict::stranger;
  if (is_same(cookie_value(request.cookie, cookie_name_), token_)) return Verdict::known;
  return arrives && is_same(request.argument("token"), token_) ? Verdict::newcomer : Verdict::stranger;
}

}  // namespace graphrun::studio
