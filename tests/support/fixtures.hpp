// What another program computed, from tests/fixtures/*.json; who made it and how is told in make_fixtures.py there.
#pragma once
#include <map>
#include <string>
#include <vector>
#include "engine/indices.hpp"

namespace lookback::test {

// One case: from parameters and inputs follow outputs, and from L = Σ outputs ⊙ cotangents the gradients of all of
// them.
struct Fixture {
    using Arrays = std::map<std::string, Array>;
    std::string layer, name;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> words;
    std::map<std::string, Indices> indices;
    std::map<std::string, Mask> masks;
    Arrays parameters, inputs, cotangents, outputs, gradients;

    std::size_t count(const std::string& key) const { return std::size_t(numbers.at(key)); }
    bool says(const std::string& key, const std::string& word) const {
        const auto at = words.find(key);
        return at != words.end() && at->second == word;
    }
};

// The cases of one layer, from tests/fixtures/FILE.json.   throws ValueError naming the file
std::vector<Fixture> fixtures(const std::string& file, const std::string& layer);

}  // namespace lookback::test
