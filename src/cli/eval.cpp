// eval.cpp: the verb `eval`: loss and metrics of saved weights on every split.
#include "graphrun/error.h"
#include "open.h"
#include "results.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {

int run_eval(const Arguments& arguments, Diagnostics& diagnostics) {
  Session session = open_session(arguments, diagnostics);
  if (const std::string& stray = session.model().data.stray; !stray.empty()) {
    throw Error(ErrorKind::input, "weights.split", stray + ": 'test' may hold rows that were trained with",
                "evaluate with the data and the split of the training, or give new rows a split of their own: "
                "\"test\": {...}");
  }
  if (arguments.verbose) describe(session, diagnostics);
  const Results results = evaluated(session);
  write_results(arguments.json ? as_json(results) : as_text(results));
  refuse_non_finite(results);
  return kDone;
}

}  // namespace graphrun::cli
