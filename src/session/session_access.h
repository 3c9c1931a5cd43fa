// session_access.h: gives checkpoints and exports access to the implementation of a Session.
// Contract: throws Error if the Session was moved from.
#pragma once

#include "session/session_impl.h"

namespace graphrun {

struct SessionAccess {
  using Impl = Session::Impl;
  static Impl& impl(Session& session) { return not_moved(session.impl_, "session"); }
};

}  // namespace graphrun
