// man.h: the page graphrun(1), from the tables that --help is made of.
// Contract: roff with the macros of man(7), without a date, so that the same build prints the same page.
#pragma once

#include <string>

namespace graphrun::cli {

std::string manual();

}  // namespace graphrun::cli
