// arguments.h: the command line as a value.
// Contract: parse() only reads; it throws Error (kind input, code "usage.*") for each mistake, CLI11's own included.
// Flags come before, between or after the verb and the model. Leaves to others: doing anything (verbs.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diagnostics.h"
#include "graphrun/model.h"
#include "graphrun/session.h"

namespace graphrun::cli {

struct Arguments {
  std::string text;  // what --help or --version print; then nothing below counts
  std::string verb = "train";
  std::string model;  // path
  LoadOptions load;
  SessionOptions session;
  std::string losses;                  // path; empty: none
  std::string against = "ref";         // verify
  std::optional<std::uint64_t> steps;  // verify
  std::optional<double> tolerance;     // verify
  bool trajectory = false;             // verify
  std::string dump, dump_to;           // verify: the name of a value; a path, empty: none
  bool json = false;
  bool program = false;
  bool quiet = false;
  bool verbose = false;
};

Arguments parse(int argc, const char* const* argv);

// Read ahead of parse(), whose own errors have to be told in this format.
Diagnostics::Format diagnostics_format(int argc, const char* const* argv);

}  // namespace graphrun::cli
