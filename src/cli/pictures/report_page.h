// report_page.h: report of a trained model as one HTML page: metrics, curves, pictures, graph, memory plan,
// environment.
// Contract: all metrics come from `results` and the session; nothing is recomputed. The page stays below 2 MiB: it
// omits pictures that would exceed that, with a note. Not handled here: files (report.cpp, train.cpp, eval.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/results/results.h"
#include "graphrun/session.h"
#include "plot/figure.h"

namespace graphrun::cli {

// Information that the session lacks.
struct ReportSource {
  std::string heading;                                     // next to the model's name
  std::vector<plot::Figure> curves;                        // over epochs
  std::vector<std::pair<std::string, std::string>> facts;  // name and value, about the run
  std::string graph_text;                                  // output of show_model(); empty: omitted
  std::string environment;                                 // text, or JSON for a stored run
};

std::string report_page(Session& session, const Results& results, const ReportSource& source);

// Output of show_model() for the command line's model file; empty if that can be read only once (a pipe).
std::string graph_of(const Arguments& arguments);
// Environment of train and eval: command, program, machine.
std::string described_environment(const std::vector<std::string>& command, const Session& session);

}  // namespace graphrun::cli
