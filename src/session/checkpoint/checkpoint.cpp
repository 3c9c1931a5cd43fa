// checkpoint.cpp: a single checkpoint in a file of any name.
#include "graphrun/checkpoint.h"

#include <fmt/format.h>

#include <span>

#include "base/checksum.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "session/checkpoint/training_state.h"
#include "session/session_access.h"

namespace graphrun {

std::string model_hash(const Model& model) {
  return fingerprint_of(training_config(model));
}

std::string plan_hash(const Program& program) {
  const std::string text = to_string(program);
  return fmt::format("{:016x}", checksum(std::as_bytes(std::span(text))));
}

void save_checkpoint(Session& session, const std::string& path) {
  OutputFile file(path, "checkpoint.write");
  TrainingState state(SessionAccess::impl(session));
  if (!state.write([&](std::string_view bytes) { file.write(bytes); }))
    throw Error(ErrorKind::run, "checkpoint.not_finite",
                fmt::format("'{}' is not written: a parameter is not finite", path));
  file.commit();
}

CheckpointInfo load_checkpoint(Session& session, const std::string& path) {
  SessionAccess::impl(session).loaded.reject_in_train("load_checkpoint");
  return TrainingState(SessionAccess::impl(session)).restore(CheckpointFile(path));
}

}  // namespace graphrun
