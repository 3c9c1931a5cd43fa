#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "diagnostics.h"

namespace graphrun::cli {
namespace {

std::atomic<Session*> cancellable{nullptr};
std::atomic<bool> asked{false};
static_assert(std::atomic<Session*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  Session* session = cancellable.load();
  if (session == nullptr || asked.exchange(true)) _exit(kInterrupted);
  session->cancel();
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // a read or write that was under way goes on
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is a failed write, not a death by signal
}

bool interrupted() {
  return asked.load();
}

Interrupt::Interrupt(Session& session) {
  cancellable = &session;
}

Interrupt::~Interrupt() {
  cancellable = nullptr;
}

}  // namespace graphrun::cli
