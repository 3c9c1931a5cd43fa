// connection.h: one connection of the server and its state.
#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"
#include "studio/http.h"
#include "studio/server.h"

namespace graphrun::studio {

enum class State {
  head,       // reading the head
  body,       // access granted, reading the body
  waiting,    // waiting for the handler's answer
  writing,    // sending the answer
  streaming,  // sending events
  leaving,    // answer sent: input is read and discarded, so that a reset does not lose the answer
  gone
};

struct Connection {
  Descriptor socket;
  Ticket ticket = 0;
  State state = State::head;
  double until = 0;  // deadline, after which the connection is dropped
  Request request = {};
  std::string in = {}, out = {};
  std::size_t written = 0;  // bytes of `out`
};

}  // namespace graphrun::studio
