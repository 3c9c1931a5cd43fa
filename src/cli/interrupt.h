// interrupt.h: Ctrl-C ends the training and keeps its results.
// Contract: while an Interrupt lives, the first SIGINT or SIGTERM cancels its session; a second one, or one that comes
// while there is no session, ends the program at once with exit code 130. At most one Interrupt lives at a time.
#pragma once

#include "graphrun/session.h"

namespace graphrun::cli {

void install_signal_handlers();
bool interrupted();
void wait_or_interrupt(double seconds);  // returns when the time is over or interrupted() is true

class Interrupt {
 public:
  explicit Interrupt(Session& session);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
};

}  // namespace graphrun::cli
