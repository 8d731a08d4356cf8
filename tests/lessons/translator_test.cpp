// The trained model that is shipped, and what makes a file a translator's.
#include "lessons/translator.hpp"
#include <unistd.h>
#include <filesystem>
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static const std::string data = LOOKBACK_SOURCE_DIR "/lessons/data/";

TEST_CASE("the shipped model writes held-out dates of eight languages as ISO") {
    CHECK(std::filesystem::file_size(data + "dates.safetensors") <= 500'000);
    const Translator dates = Translator::load(data + "dates.safetensors");
    CHECK(dates("15 mars 1953").text == "1953-03-15");
    std::size_t right = 0;
    const std::vector<Row> rows = read_tsv(data + "dates.held-out.tsv", 2);
    for (std::size_t i = 0; i < 100; ++i) right += dates(rows[i].fields[0]).text == rows[i].fields[1];
    CHECK(right >= 98);
}

TEST_CASE("its attention finds the year, which stands last in the text, when it writes the year, first") {
    const Translator dates = Translator::load(data + "dates.safetensors");
    const Translator::Answer answer = dates("domenica 15 marzo 1953");
    REQUIRE(answer.text == "1953-03-15");
    REQUIRE(answer.weights.size() == 10);
    CHECK(answer.source.size() == 22);
    for (const Array& weights : answer.weights) {
        double total = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) total += double(weights(i));
        CHECK(close(total, 1));
    }
    double on_year = 0;
    for (std::size_t i = 18; i < 22; ++i) on_year += double(answer.weights[1](i));
    CHECK(on_year > 0.5);
}

TEST_CASE("a text that the model can't have learned to read is an error that names the character") {
    const Translator dates = Translator::load(data + "dates.safetensors");
    CHECK_THROWS_AS(dates(""), ValueError);
    CHECK_THROWS_WITH(dates("15 марта 1953"), contains("\"м\" at place 3"));
    CHECK_THROWS_WITH(dates("15\xff"), contains("not UTF-8"));
}

TEST_CASE("a translator is saved with its alphabets, and gives the same answers when it is loaded") {
    const std::string file =
        std::filesystem::temp_directory_path() / ("lookback-translator-" + std::to_string(::getpid()));
    Generator generator(1);
    const std::vector<Tokens> source{{"a", "b", " "}}, target{{"N", "AY"}};
    Translator one(Alphabet(source), Alphabet(target), Translator::Written::words,
                   {.embedding = 3, .hidden = 4, .attention = 5, .decoder = DecoderKind::luong}, generator);
    one.save(file, {{"task", "none"}});
    Translator other = Translator::load(file);
    other.save(file);  // its weights are rounded already
    const Translator third = Translator::load(file);
    CHECK(other("ab a").text == third("ab a").text);
    CHECK(other("ab a").log_probability == third("ab a").log_probability);
    CHECK(third.target_text({3, 4}) == "AY N");

    struct Other {
        Parameter w{Array{1}};
        void for_each_parameter(const std::string&, const Visitor& f) { f("w", w); }
    } model;
    save(model, file, {{"decoder", "luong"}, {"embedding", "-3"}});
    CHECK_THROWS_WITH(Translator::load(file), contains(file) && contains("embedding"));
    save(model, file);
    CHECK_THROWS_WITH(Translator::load(file), contains("decoder"));
    std::filesystem::remove(file);
}
