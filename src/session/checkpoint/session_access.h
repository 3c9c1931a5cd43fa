// session_access.h: what is behind a Session, for checkpoints.
// Contract: throws Error for one that was moved away from.
#pragma once

#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {

struct SessionAccess {
  using Impl = Session::Impl;
  static Impl& impl(Session& session) {
    if (session.impl_ != nullptr) return *session.impl_;
    throw Error(ErrorKind::input, "session.moved", "the session was moved away from");
  }
};

}  // namespace graphrun
