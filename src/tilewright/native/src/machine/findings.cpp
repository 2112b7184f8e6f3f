#include "findings.h"

#include <cstdarg>
#include <tuple>

namespace tw {

namespace {

struct Finding {
    std::string code, role, file, message;
    int line = 0;
    u32 x = 0, y = 0;
    u64 count = 1;
};

std::vector<Finding> findings;
std::map<std::tuple<std::string, std::string, int>, std::size_t> seen;
constexpr std::size_t kMost = 200;

void escaped(std::FILE* file, const std::string& text) {
    for (char c : text) {
        if (c == '\\') std::fputs("\\\\", file);
        else if (c == '\t') std::fputs("\\t", file);
        else if (c == '\n') std::fputs("\\n", file);
        else std::fputc(c, file);
    }
}

}  // namespace

const char* role_name(Role role) {
    constexpr const char* names[] = {"reader", "unpack", "math", "pack", "writer"};
    return names[static_cast<int>(role)];
}

void report_for(const char* code, const Core* core, Role role, Loc at, const std::string& message) {
    const auto key = std::make_tuple(std::string(code), std::string(at.file), at.line);
    const auto found = seen.find(key);
    if (found != seen.end()) {
        ++findings[found->second].count;
        return;
    }
    if (findings.size() >= kMost) return;
    seen[key] = findings.size();
    Finding finding;
    finding.code = code;
    finding.role = role_name(role);
    finding.file = at.file;
    finding.line = at.line;
    finding.message = message;
    if (core) {
        finding.x = core->x;
        finding.y = core->y;
    }
    findings.push_back(finding);
}

void report(const char* code, Loc at, const char* format, ...) {
    char text[600];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    report_for(code, &self_core(), self_role(), at, text);
}

void complain(const char* code, const char* message, Loc at) {
    if (self_role() == Role::Math) report(code, at, "%s", message);
}

void write_findings(std::FILE* file) {
    for (const Finding& finding : findings) {
        std::fprintf(file, "finding\t%s\t%s\t%d\t%s\t%u\t%u\t%llu\t", finding.code.c_str(), finding.file.c_str(), finding.line,
                     finding.role.c_str(), finding.x, finding.y, static_cast<unsigned long long>(finding.count));
        escaped(file, finding.message);
        std::fputc('\n', file);
    }
}

}  // namespace tw
