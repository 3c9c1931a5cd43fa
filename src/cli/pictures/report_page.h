// report_page.h: what a trained model has reached, as one page of HTML: figures, curves, pictures, the graph, the
// memory plan, and how it was run. Contract: all figures are those of `results` and of the session; nothing is computed
// anew. Below 2 MiB: pictures that would make it larger are left out, which the page tells. Leaves to others: files
// (report.cpp, train.cpp, eval.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/results/results.h"
#include "graphrun/session.h"
#include "plot/figure.h"

namespace graphrun::cli {

// What the session does not know.
struct ReportSource {
  std::string heading;                                     // beside the model's name
  plot::Figure curves;                                     // over epochs; no series: none
  std::vector<std::pair<std::string, std::string>> facts;  // of the run
  std::string graph_text;                                  // show_model(); empty: not there
  std::string environment;                                 // as text, JSON for a stored run
};

std::string report_page(Session& session, const Results& results, const ReportSource& source);

// show_model() of the file that the command line names; empty where it can be read but once.
std::string graph_of(const Arguments& arguments);
// What train and eval tell of themselves: the command, the program, the machine.
std::string described_environment(const std::vector<std::string>& command, const Session& session);

}  // namespace graphrun::cli
