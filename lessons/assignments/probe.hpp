// The inner side of the process border. A student's file is linked with this into a program that reads one input from
// stdin, calls one function, and writes its answer to descriptor 3. It knows no expectation, so nothing that is done in
// this process can make a wrong answer right.
//
//   in    {"task": "2.1", "input": [argument, …]}
//   out   {"answer": value}, {"not_done": "2.1"} or {"error": "what was thrown"}
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include "value.hpp"

namespace lookback {

using Call = std::function<Json(const Json& arguments)>;

// A function with its arguments read from JSON and its result written as JSON.
template <class Result, class... Arguments> Call call(Result (*function)(Arguments...)) {
    return [function](const Json& json) {
        std::tuple<std::remove_cvref_t<Arguments>...> arguments;
        std::size_t i = 0;
        std::apply([&](auto&... argument) { (decode(json.at(i++), argument), ...); }, arguments);
        return encode(std::apply(function, arguments));
    };
}

// What each task calls; every assignment defines it, in its calls.cpp.
std::map<std::string, Call> calls();

}  // namespace lookback
