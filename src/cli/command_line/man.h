// man.h: man page graphrun(1), generated from the same tables as --help.
// Contract: roff with the macros of man(7), without a date, so that the same build prints the same page.
#pragma once

#include <string>

namespace graphrun::cli {

std::string manual();

}  // namespace graphrun::cli
