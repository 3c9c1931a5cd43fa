// session_access.h: what is behind a Session, for checkpoints.
// Contract: throws Error for one that was moved away from.
#pragma once

#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {

struct SessionAccess {
  using Impl = Session::Impl;
  static Impl& impl(Session& session) { return not_moved(session.impl_, "session"); }
};

}  // namespace graphrun
