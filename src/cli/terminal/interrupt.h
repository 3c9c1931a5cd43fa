// interrupt.h: SIGINT (Ctrl-C), SIGTERM, SIGHUP (terminal closed) and SIGXCPU (CPU time limit) stop the training and
// keep its results. With a checkpoint folder SIGHUP requests a checkpoint and the training continues.
// Contract: the first of these signals cancels the session of each Interrupt. A second SIGINT or SIGTERM, or any signal
// without a session, exits at once with code 130. Signals that the caller ignores stay ignored. Any thread may have an
// Interrupt, up to kMaxInterrupts at a time.
#pragma once

#include <cstddef>

#include "graphrun/checkpoint.h"
#include "graphrun/session.h"

namespace graphrun::cli {

void install_signal_handlers();
bool interrupted();
int interrupt_event();                   // file descriptor that becomes readable when interrupted() becomes true
double seconds_since_interrupt();        // minus infinity: no interrupt
void wait_or_interrupt(double seconds);  // returns early if interrupted() becomes true

inline constexpr std::size_t kMaxInterrupts = 8192;

class Interrupt {
 public:
  explicit Interrupt(Session& session, CheckpointFolder* checkpoints = nullptr);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  std::size_t entry_ = 0;
};

// While one exists, the first signal only sets interrupted(): for code that polls it and has no session.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace graphrun::cli
