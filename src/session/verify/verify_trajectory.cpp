// verify_trajectory.cpp: runs both executors independently, the candidate as a Session does, and compares only their
// parameters.

#include <algorithm>
#include <cmath>

#include "graphrun/error.h"
#include "session/verify/verify_parts.h"

namespace graphrun {
namespace {

class Trajectory {
 public:
  explicit Trajectory(Verification& v)
      : v_(v),
        report_(v.report),
        candidate_(load_program(*v.executors[0], v.whole.program)),
        reference_(load_program(*v.executors[1], v.program())) {
    write_start(v.model, v.whole, {candidate_.get()});
    write_start(v.model, v.compiled, {reference_.get()});
  }

  void run() {
    while (report_.training_steps < v_.options.steps && !report_.difference) {
      at_ = report_.training_steps++;
      candidate_->run(0, 1);
      reference_->run(0, 1);
      compare_parameters();
    }
  }

 private:
  void compare_parameters() {
    Divergence worst{report_.training_steps, {}, -1};
    for (const auto& [name, node] : v_.compiled.step.parameters) {
      const BufferId id = v_.compiled.buffer(node);
      const Bytes got = read_bytes(*candidate_, v_.whole.program, v_.whole.buffer(node));
      const Bytes expected = read_bytes(*reference_, v_.program(), id);
      const Sides sides{v_.program().buffers[id].type, got, expected, Agreement::exact};
      double difference = 0, largest = 0;
      std::size_t where = 0;
      for (std::size_t i = 0; i < sides.elements(); ++i) {
        const double a = element(sides.type.dtype, got, i), b = element(sides.type.dtype, expected, i);
        if (!std::isfinite(a) || !std::isfinite(b)) return reject_parameter(id, sides, i);
        if (std::fabs(a - b) > difference) {
          difference = std::fabs(a - b);
          where = i;
        }
        largest = std::max(largest, std::fabs(b));
      }
      report_.values += sides.elements();
      if (difference > 0 && largest > 0) difference /= largest;
      if (difference > worst.difference) worst = {worst.step, name, difference};
      if (v_.options.tolerance && difference > *v_.options.tolerance) return reject_parameter(id, sides, where);
    }
    report_.growth.push_back(worst);
  }

  void reject_parameter(BufferId id, const Sides& sides, std::size_t i) {
    report_.difference =
        describe(v_, Difference::Kind::parameter, v_.program().phases[0], at_, v_.program().buffers[id], sides, i);
    report_.difference->tolerance = v_.options.tolerance.value_or(0);
  }

  Verification& v_;
  VerifyReport& report_;
  std::unique_ptr<Runnable> candidate_, reference_;
  std::uint64_t at_ = 0;
};

}  // namespace

void verify_trajectory(Verification& verification) {
  Trajectory(verification).run();
}

}  // namespace graphrun
