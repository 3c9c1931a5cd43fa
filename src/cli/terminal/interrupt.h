// interrupt.h: Ctrl-C ends the training and keeps its results; so do SIGTERM, a terminal that is closed (SIGHUP) and
// processor time that is used up (SIGXCPU). With a folder of checkpoints SIGHUP asks for one, and the training goes on.
// Contract: while an Interrupt lives, the first of these signals cancels its session; a second SIGINT or SIGTERM, or
// any that comes while there is no session, ends the program at once with exit code 130. A signal that the caller
// ignores stays ignored. At most one Interrupt lives at a time.
#pragma once

#include "graphrun/checkpoint.h"
#include "graphrun/session.h"

namespace graphrun::cli {

void install_signal_handlers();
bool interrupted();
int interrupt_event();                   // a descriptor that can be read once interrupted() is true
double seconds_since_interrupt();        // minus infinity: there was none
void wait_or_interrupt(double seconds);  // returns when the time is over or interrupted() is true

class Interrupt {
 public:
  explicit Interrupt(Session& session, CheckpointFolder* checkpoints = nullptr);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
};

// While it lives the first signal only makes interrupted() true: for who has no session and looks.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace graphrun::cli
