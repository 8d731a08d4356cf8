// What instructors and the scripts run:   course cases N [--hidden SEED]     an assignment's cases as JSON
//                                         course strip REFERENCE.cpp         the students' file
#include "course.hpp"
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include "strip.hpp"

namespace lookback {

Suite::Suite(const std::string& number, const std::string& title, const std::string& file,
             std::optional<std::uint64_t> hidden_seed)
    : json_{{"assignment", number},
            {"title", title},
            {"file", file},
            {"tasks", Json::array()},
            {"cases", Json::array()}},
      public_(1) {
    if (hidden_seed) hidden_.emplace(*hidden_seed), json_["seed"] = *hidden_seed;
}

void Suite::task(const std::string& number, const std::string& title, int points, const std::string& hint,
                 const std::vector<std::string>& names) {
    json_["tasks"].push_back(
        {{"number", number}, {"title", title}, {"points", points}, {"hint", hint}, {"arguments", names}});
}

void Suite::add(const std::string& name, Json arguments, Json expected, double tolerance) {
    json_["cases"].push_back({{"task", json_["tasks"].back()["number"]},
                              {"name", drawn_ ? name + " " + std::to_string(drawn_) : name},
                              {"hidden", hiding_},
                              {"input", std::move(arguments)},
                              {"expected", std::move(expected)},
                              {"tolerance", tolerance},
                              {"mistakes", Json::array()}});
}

void Suite::mistake(Json answer, const std::string& hint) {
    json_["cases"].back()["mistakes"].push_back({{"answer", std::move(answer)}, {"hint", hint}});
}

void Suite::note(const std::string& hint) { json_["cases"].back()["note"] = hint; }

void Suite::draw(int times, const std::function<void(Generator&)>& add_one) {
    for (drawn_ = 1; drawn_ <= times; ++drawn_) add_one(public_);
    hiding_ = true;
    for (drawn_ = 1; hidden_ && drawn_ <= times; ++drawn_) add_one(*hidden_);
    hiding_ = false, drawn_ = 0;
}

}  // namespace lookback

using namespace lookback;

static const std::map<std::string, Suite (*)(std::optional<std::uint64_t>)> assignments{{"2", backprop_through_time}};

static int run(const std::vector<std::string>& words) {
    if (words.size() >= 2 && words[0] == "cases" && assignments.contains(words[1])) {
        std::optional<std::uint64_t> seed;
        if (words.size() == 4 && words[2] == "--hidden") seed = std::stoull(words[3]);
        std::cout << assignments.at(words[1])(seed).json() << "\n";
        return 0;
    }
    if (words.size() == 2 && words[0] == "strip") {
        std::ostringstream text;
        text << std::ifstream(words[1], std::ios::binary).rdbuf();
        std::cout << strip(text.str());
        return 0;
    }
    std::cerr << "usage: course cases N [--hidden SEED] | strip REFERENCE.cpp\n";
    return 2;
}

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 2;
    }
}
