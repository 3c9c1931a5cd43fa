// connection.h: one connection of the server and what it waits for.
#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"
#include "studio/http.h"
#include "studio/server.h"

namespace graphrun::studio {

enum class State {
  head,       // its head is read
  body,       // it may ask
  waiting,    // for its answer
  writing,    // the answer
  streaming,  // events
  leaving,    // all is said: what it still says is read and forgotten, so that it gets the answer
  gone
};

struct Connection {
  Descriptor socket;
  Ticket ticket = 0;
  State state = State::head;
  double until = 0;  // it is dropped then
  Request request = {};
  std::string in = {}, out = {};
  std::size_t written = 0;  // of `out`
};

}  // namespace graphrun::studio
