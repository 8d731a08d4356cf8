// The instructor's side of an assignment: its tasks, and cases with what is expected of them. This is all that an
// assignment's tasks.cpp writes against; the grader knows it only as JSON.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include "engine/random.hpp"
#include "engine/tape.hpp"
#include "value.hpp"

namespace lookback {

inline Json encode(const Array& a) {
    return encode_array({a.shape().begin(), a.shape().end()}, std::vector<double>(a.begin(), a.end()));
}

// The arguments of a function under test.
template <class... Values> Json arguments(const Values&... values) {
    Json list = Json::array();
    (list.push_back(encode(values)), ...);
    return list;
}

// Collects an assignment:
//   s.task("2.1", "The tanh cell", 10, "hint", {"x", "h"});   s.add("one row", arguments(x, h), expected);
class Suite {
public:
    // The file is the one that students write. Hidden cases are made if there is a seed for them.
    Suite(const std::string& number, const std::string& title, const std::string& file,
          std::optional<std::uint64_t> hidden_seed);

    // Names: of the function's arguments.
    void task(const std::string& number, const std::string& title, int points, const std::string& hint,
              const std::vector<std::string>& names);
    // A case of the last task: the arguments of its function, and what it should return.
    void add(const std::string& name, Json arguments, Json expected, double tolerance = 1e-9);
    // What a well-known mistake would answer to the last case; a student who answers so is told.
    void mistake(Json answer, const std::string& hint);
    // What the hint of the task does not say and the last case needs.
    void note(const std::string& hint);
    // Adds a case drawn at random, `times` times in public and as often again, of other draws, hidden. Their
    // names are numbered.
    void draw(int times, const std::function<void(Generator&)>& add_one);

    const Json& json() const { return json_; }

private:
    Json json_;
    Generator public_;
    std::optional<Generator> hidden_;
    bool hiding_ = false;
    int drawn_ = 0;  // the number of a case that is drawn
};

// Every assignment: its public cases, and with a seed hidden ones as well.
Suite backprop_through_time(std::optional<std::uint64_t> hidden_seed);

}  // namespace lookback
