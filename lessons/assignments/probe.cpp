#include "probe.hpp"
#include <unistd.h>
#include <cstdio>
#include <iostream>

using namespace lookback;

static Json answer(const Json& question) {
    const std::string task = question.at("task");
    const Call function = calls().at(task);
    try {
        return {{"answer", function(question.at("input"))}};
    } catch (const NotDone& e) {
        return {{"not_done", e.task}};
    } catch (const std::exception& e) {
        return {{"error", e.what()}};
    } catch (...) {
        return {{"error", "something that is no std::exception"}};
    }
}

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what is printed before a crash should be seen
    const std::string text = answer(Json::parse(std::cin)).dump(-1, ' ', false, Json::error_handler_t::replace);
    std::cout << std::flush;
    std::fflush(nullptr);
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(3, text.data() + at, text.size() - at);
        if (n <= 0) break;
        at += std::size_t(n);
    }
    ::_exit(0);  // the answer is out: nothing of the student's runs after it
}
