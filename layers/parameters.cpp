#include "parameters.hpp"
#include <unordered_map>
#include <unordered_set>

namespace lookback {

std::string join(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
}

void Parameters::add(const std::string& path, Parameter& p) { entries_.push_back({path, &p}); }

void Parameters::refuse_doubles() const {
    std::unordered_map<const Parameter*, std::string> path_of;
    std::unordered_set<std::string> paths;
    for (const auto& [path, p] : entries_) {
        const auto [known, is_new] = path_of.try_emplace(p, path);
        if (!is_new) fail<ValueError>("Parameters", known->second + " and " + path + " are one parameter");
        if (!paths.insert(path).second) fail<ValueError>("Parameters", "two parameters have the path " + path);
    }
}

}  // namespace lookback
