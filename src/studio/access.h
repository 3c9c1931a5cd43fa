// access.h: access control: only the browser that has the token, on a page of this server, may send requests.
// Contract: judge() runs before routing, so that a stranger cannot probe for paths. The token arrives once in the query
// of "/", then in a cookie that is HttpOnly and SameSite. A `Host` other than this address (DNS rebinding), an `Origin`
// other than this page, or a POST without `Origin` makes the request a stranger's.
#pragma once

#include <string>

#include "studio/http.h"

namespace graphrun::studio {

class Access {
 public:
  explicit Access(int port);  // generates a token of 128 random bits; throws Error if that fails

  std::string url() const;     // includes the token
  std::string cookie() const;  // "graphrun_studio_8000=...", with its attributes

  enum class Verdict { stranger, newcomer, known };  // newcomer: has the token in the query, gets the cookie
  Verdict judge(const Request& request) const;

 private:
  int port_;
  std::string token_, cookie_name_;
};

}  // namespace graphrun::studio
