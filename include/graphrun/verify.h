// verify.h: comparison of two executors on one model, and any value of a run by name.
// Contract: verify() compares, up to the first difference, and changes nothing of the model:
//   1. every step alone, without regions: the candidate gets the inputs of the reference, so the faulty step can be
//      named;
//   2. the Program that a Session of the candidate runs, with its regions: from equal states, each value that leaves a
//      region, then what a whole phase in one run() leaves;
//   3. many steps in one run() against the same steps one by one: bitwise identical;
//   4. predictions of a full batch and of a partial one, in 1 and in 2.
// Errors: Error of kind input (model, options), device (executor not available). A difference is not an Error but in
// the report. Not here: correctness of the reference (conformance tests), printing (cli).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/math_mode.h"
#include "graphrun/output_file.h"
#include "graphrun/session.h"

namespace graphrun {

// The candidate is the Session's executor; "auto" is not supported. fuse: parts 2 to 4 run the Program with regions.
// Profiling is ignored.
struct VerifyOptions : SessionOptions {
  std::string against = "ref";
  std::shared_ptr<Executor> custom_against = {};  // used instead of the name when set
  std::uint64_t steps = 3;  // training steps, and the maximum per evaluation; a short last batch is added
  // Runs both executors through all steps and compares only parameters: how fast rounding errors grow.
  bool trajectory = false;
  std::optional<double> tolerance = {};  // in a trajectory: largest difference that passes; none: only NaN and inf fail
};

struct Difference {
  enum class Kind {
    value,      // an element of the step's output is out of tolerance
    outside,    // the step changed `buffer`, which is not its output
    start,      // a state differs from the reference's before the first step
    parameter,  // trajectory: a parameter is out of bounds, or not finite
    fused,      // an output of a region, or of a whole phase, is out of tolerance
    repeat,     // steps in one run() leave other bits in a state than single steps
    loss,       // the training loss is NaN or infinite on both, so equal values verify nothing
  };
  Kind kind = Kind::value;
  std::string executor, against;
  std::string phase;
  std::uint64_t phase_step = 0;     // the value of the phase's step counter
  std::size_t step = 0, steps = 0;  // in the Program's phase, from 1; 0: unknown
  std::string op, node;             // empty if unknown
  std::string buffer;               // buffer of the element
  std::vector<std::int64_t> index;
  std::string got, expected;  // the element, with all its digits
  double tolerance = 0;       // the largest |got - expected| that passes; trajectory: relative
  std::string neighbourhood;  // the elements around it from both sides; empty for a scalar
};
GRAPHRUN_API std::string to_string(const Difference& difference);

// Agreement of all steps of one op.
struct OpAgreement {
  std::string op;
  std::uint64_t steps = 0, values = 0;
  double worst = 0;  // the largest |got - expected| / tolerance
  std::string node;  // node with the worst value; empty if all values are equal
};

// Trajectory: the parameter with the largest error after a step, max |got - expected| / max |expected|.
struct Divergence {
  std::uint64_t step = 0;  // from 1
  std::string parameter;
  double difference = 0;
};

struct VerifyReport {
  std::string executor, against;
  bool on_device = false;                                                   // the candidate's Program targets a device
  MathMode math = MathMode::exact;                                          // math mode of that Program
  std::uint64_t training_steps = 0, evaluation_steps = 0, predictions = 0;  // counts of part 1
  std::uint64_t values = 0;                                                 // values compared in part 1
  std::uint64_t regions = 0;                                                // in the Program that a Session runs
  std::uint64_t fused_values = 0;                                           // values compared in part 2
  std::vector<OpAgreement> ops;                                             // worst first
  std::vector<std::string> fallbacks;                                       // as in FusionSummary
  std::vector<Divergence> growth;
  std::optional<Difference> difference;  // the first difference found
  bool passed() const { return !difference; }
};

GRAPHRUN_API VerifyReport verify(const Model& model, const VerifyOptions& options = {});

// "auto" is not supported. fuse applies to states, which training changes; other values are those of plain steps.
// Profiling is ignored.
struct ValueOptions : SessionOptions {
  std::uint64_t steps = 0;  // training steps before the value is read
};

// Reads a value of the Program by name ("W", "train/h", or "h" for the latter). A state is read after the steps; other
// values are those of the phase's next step. Throws Error with the nearest name if it does not exist.
GRAPHRUN_API HostTensor value_after(const Model& model, std::string_view name, const ValueOptions& options = {});

// Writes the tensor in NumPy's format, version 1.0, and commits the file.
GRAPHRUN_API void save_npy(const HostTensor& tensor, OutputFile& file);

}  // namespace graphrun
