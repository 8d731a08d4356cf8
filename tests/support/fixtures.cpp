#include "fixtures.hpp"
#include <fstream>
#include <nlohmann/json.hpp>

namespace lookback::test {

using Json = nlohmann::json;

static Shape shape_of(const Json& tensor) {
    Shape shape;
    for (const Json& axis : tensor.at("shape")) shape.push_back(axis.get<std::size_t>());
    return shape;
}

static Array array_of(const Json& tensor) {
    const std::vector<double> values = tensor.at("values");
    Array a = filled(shape_of(tensor), 0);
    if (a.size() != values.size()) fail<ShapeError>("fixtures", text(shape_of(tensor)) + " of other values");
    for (std::size_t i = 0; i < values.size(); ++i) a.data()[i] = Real(values[i]);
    return a;
}

static Fixture fixture(const Json& made) {
    Fixture f;
    f.layer = made.at("layer");
    f.name = made.at("name");
    for (const auto& [kind, entries] : made.items()) {
        if (kind == "layer" || kind == "name") continue;
        for (const auto& [key, value] : entries.items()) {
            if (kind == "numbers")
                f.numbers[key] = value;
            else if (kind == "words")
                f.words[key] = value;
            else if (kind == "indices")
                f.indices.emplace(key, Indices(shape_of(value), value.at("values").get<std::vector<std::int64_t>>()));
            else if (kind == "masks")
                f.masks.emplace(key, Mask(shape_of(value), value.at("values").get<std::vector<bool>>()));
            else if (kind == "parameters")
                f.parameters[key] = array_of(value);
            else if (kind == "inputs")
                f.inputs[key] = array_of(value);
            else if (kind == "cotangents")
                f.cotangents[key] = array_of(value);
            else if (kind == "outputs")
                f.outputs[key] = array_of(value);
            else if (kind == "gradients")
                f.gradients[key] = array_of(value);
            else
                fail<ValueError>("fixtures", f.layer + ", " + f.name + " has " + kind);
        }
    }
    return f;
}

std::vector<Fixture> fixtures(const std::string& file, const std::string& layer) {
    const std::string path = LOOKBACK_SOURCE_DIR "/tests/fixtures/" + file + ".json";
    std::vector<Fixture> all;
    try {
        std::ifstream in(path);
        const Json file_contents = Json::parse(in);
        for (const Json& made : file_contents.at("cases"))
            if (made.at("layer") == layer) all.push_back(fixture(made));
    } catch (const Json::exception& error) {
        fail<ValueError>("fixtures", path + ": " + error.what());
    }
    return all;
}

}  // namespace lookback::test
