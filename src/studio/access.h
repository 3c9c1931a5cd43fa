// access.h: who may ask: the browser that was given the token, on a page of this very server.
// Contract: judged before anything is routed, so that a stranger cannot tell which paths there are. The token comes in
// the query of "/" once and then as a cookie that scripts do not see and other sites do not send. A Host that is not
// this address (DNS that was rebound), an Origin that is not this page, or none of them on a POST, is a stranger.
#pragma once

#include <string>

#include "studio/http.h"

namespace graphrun::studio {

class Access {
 public:
  explicit Access(int port);  // makes a token of 128 random bits; throws Error where there are none

  std::string url() const;     // with the token
  std::string cookie() const;  // "graphrun_studio_8000=...", and how it is kept

  enum class Verdict { stranger, newcomer, known };  // newcomer: brings the token, gets the cookie
  Verdict judge(const Request& request) const;

 private:
  int port_;
  std::string token_, cookie_name_;
};

}  // namespace graphrun::studio
