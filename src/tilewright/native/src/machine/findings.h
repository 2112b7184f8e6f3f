// Everything a run complains about, once per kind and kernel line.
#pragma once
#include <cstdio>
#include <string>

#include "machine.h"

namespace tw {

// printf-style message; the running thread and core are recorded with it.
void report(const char* code, Loc at, const char* format, ...) __attribute__((format(printf, 3, 4)));
void report_for(const char* code, const Core* core, Role role, Loc at, const std::string& message);
void write_findings(std::FILE* file);

}  // namespace tw
