// What the course claims, row by row, and what the lessons measured: makes claims.md of claims.tsv and a run's traces.
//
// A row's verdict stands on its checks, so this fails (exit 1, a line for each reason) if a row is missing or doubled,
// a check is unknown or does not hold, one serves more than three rows, or, with --check, claims.md says anything else
// but for its numbers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include "engine/trace.hpp"
#include "layers/data.hpp"
#include "lessons/flags.hpp"
#include "lessons/terminal.hpp"

namespace fs = std::filesystem;
using namespace lookback;

namespace {

constexpr std::size_t claims = 77, most_rows_a_check = 3;
const std::string none = "–";
const std::set<std::string> verdicts{"holds", "imprecise", "wrong", "no evidence", "left out", "not measurable"};

struct Claim {
    std::size_t line;
    std::string id, place, text, verdict, truth;
    std::vector<std::string> checks;
    std::set<std::string> full_run;  // of these: what only a full run makes
};

struct Run {
    std::map<std::string, Trace::Check> checks;
    std::map<std::string, bool> quick;  // of the lessons whose trace there is: "07"
};

struct Reasons {
    std::vector<std::string> all;
    void add(const std::string& where, const std::string& what) { all.push_back(where + ": " + what); }
};

// S01 … S77
std::string claim_id(std::size_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "S%02zu", n);
    return text;
}

std::vector<Claim> read_claims(const fs::path& file) {
    std::vector<Claim> all;
    for (const Row& row : read_tsv(file.string(), 6)) {
        Claim c{row.line, row.fields[0], row.fields[1], row.fields[2], row.fields[4], row.fields[5], {}, {}};
        std::istringstream ids(row.fields[3]);
        for (std::string id; ids >> id;) {
            if (id == none) continue;
            const bool full = id.back() == '*';
            if (full) id.pop_back();
            c.checks.push_back(id);
            if (full) c.full_run.insert(id);
        }
        all.push_back(std::move(c));
    }
    return all;
}

Run read_run(const fs::path& folder, Reasons& reasons) {
    Run run;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() != ".json" || name.size() < 3 || name[2] != '_' || !std::isdigit(name[0]))
            continue;
        const Trace trace = read_trace(entry.path());
        if (trace.config.contains("break"))
            reasons.add(name, "this trace is of a lesson that was broken on purpose; run it again without --break");
        const auto quick = trace.config.find("quick");
        run.quick[name.substr(0, 2)] = quick != trace.config.end() && quick->second == Trace::Value(true);
        for (const Trace::Check& check : trace.checks) run.checks[check.id] = check;
    }
    return run;
}

std::string lesson_of(const std::string& check) { return check.substr(0, check.find('.')); }

void judge(const std::vector<Claim>& all, const Run& run, Reasons& reasons) {
    std::map<std::string, std::size_t> rows, served;
    std::set<std::string> without_trace;
    for (const Claim& c : all) {
        const std::string where = c.id + " (line " + std::to_string(c.line) + ")";
        if (++rows[c.id] == 2) reasons.add(where, "there are two rows of this name");
        if (!verdicts.contains(c.verdict)) reasons.add(where, "\"" + c.verdict + "\" is no verdict");
        if (c.checks.empty() != (c.verdict == "not measurable"))
            reasons.add(where,
                        c.checks.empty() ? "a verdict without a check" : "not measurable, and yet it has checks");
        if (std::set<std::string>(c.checks.begin(), c.checks.end()).size() != c.checks.size())
            reasons.add(where, "a check is named twice");
        for (const std::string& id : c.checks) {
            if (++served[id] == most_rows_a_check + 1)
                reasons.add(id, "serves more than " + std::to_string(most_rows_a_check) + " rows");
            const auto quick = run.quick.find(lesson_of(id));
            const auto check = run.checks.find(id);
            const bool full_run_only = c.full_run.contains(id);
            if (quick == run.quick.end())
                without_trace.insert(lesson_of(id));
            else if (check == run.checks.end()) {
                if (!full_run_only || !quick->second)
                    reasons.add(where,
                                "no lesson makes the check " + id +
                                    (quick->second ? " in a quick run (mark it with * if a full run does)" : ""));
            } else if (full_run_only && quick->second)
                reasons.add(where, id + " is made by quick runs too: it needs no *");
            else if (!check->second.pass && check->second.kind != Trace::Kind::target)
                reasons.add(where, "the verdict \"" + c.verdict + "\" does not follow: " + id + " fails");
        }
    }
    for (std::size_t n = 1; n <= claims; ++n)
        if (!rows.contains(claim_id(n))) reasons.add(claim_id(n), "there is no such row");
    for (const auto& [id, count] : rows) {
        std::size_t n = 1;
        while (n <= claims && claim_id(n) != id) ++n;
        if (n > claims) reasons.add(id, "is none of S01 … S77");
    }
    for (const std::string& lesson : without_trace)
        reasons.add("lesson " + lesson,
                    "no trace of it (lessons/run all makes it; --quick with the exact checks alone)");
}

// ---- The page

// In a cell of a Markdown table.
std::string cell(const std::string& text) {
    std::string safe;
    for (const char c : text) safe += c == '|' || c == '<' || c == '*' ? std::string("\\") + c : std::string(1, c);
    return safe;
}

// Where numbers of a run stand, and nothing else: what a page may differ in.
constexpr char number_here = '\x01';

std::string measured(const Trace::Check& c) {
    static const char* const signs[] = {"=", "≤", "≥", "≈", "=", "~"};
    const std::string verdict = c.pass ? "" : c.kind == Trace::Kind::target ? " (differs)" : " (FAILS)";
    const std::string tolerance = c.tolerance == 0 ? "" : terminal::number(c.tolerance, " ± %.0e");
    return terminal::number(c.measured) + " " + signs[int(c.kind)] + " " + terminal::number(c.theory) + tolerance +
           verdict;
}

std::string checks_cell(const Claim& c, const Run& run, bool numbers) {
    std::string all;
    for (const std::string& id : c.checks) {
        all += (all.empty() ? "`" : "<br>`") + id + "` ";
        const auto check = run.checks.find(id);
        // What only a full run makes, a quick one knows neither the numbers nor the words of.
        if (c.full_run.contains(id))
            all += numbers ? check == run.checks.end() ? "(full run)"
                                                       : cell(check->second.claim) + ": " + measured(check->second)
                           : std::string(1, number_here);
        else if (check != run.checks.end())
            all += cell(check->second.claim) + ": " + (numbers ? measured(check->second) : std::string(1, number_here));
    }
    return all.empty() ? none : all;
}

std::string lessons_cell(const Claim& c) {
    std::set<std::string> lessons;
    for (const std::string& id : c.checks) lessons.insert(lesson_of(id));
    std::string all;
    for (const std::string& lesson : lessons) all += (all.empty() ? "" : ", ") + lesson;
    return all.empty() ? none : all;
}

std::string page(const std::vector<Claim>& all, const Run& run, bool numbers) {
    std::map<std::string, std::size_t> count;
    for (const Claim& c : all) ++count[c.verdict];
    std::ostringstream out;
    out << "# What the course claims, and what the lessons measured\n\n"
           "Made by `lessons/run claims` from `claims.tsv` and the traces of `lessons/run all`; not to be edited. "
           "Each row is a claim of the course text “Attention Fundamentals”, in our words, with a verdict, what is "
           "true as far as we know, and "
           "the checks that bear it out: measured value, relation, theory, tolerance. A check is a line at the end of "
           "its lesson "
           "(`lessons/run 07`) and fails there if it does not hold. A relation ~ is a target: trained or timed on one "
           "machine, reported, and no ground for a verdict by itself; “differs” then says that it was missed, which "
           "can be "
           "the point (for S15 the theory is the course's reading).\n\n"
           "| verdict | rows | meaning |\n|---|---|---|\n";
    const std::pair<const char*, const char*> meanings[] = {
        {"holds", "true as it stands"},
        {"imprecise", "true in part, or under conditions that the text does not name"},
        {"wrong", "a counterexample, or the opposite, is measured"},
        {"no evidence", "no source or measurement supports it"},
        {"left out", "the text is silent on it"},
        {"not measurable", "history, or other hardware: told, not measured"}};
    for (const auto& [verdict, meaning] : meanings)
        out << "| " << verdict << " | " << count[verdict] << " | " << meaning << " |\n";

    std::vector<std::string> places;  // in the order of the first claim there
    for (const Claim& c : all)
        if (std::find(places.begin(), places.end(), c.place) == places.end()) places.push_back(c.place);
    for (const std::string& place : places) {
        out << "\n## " << place << "\n\n| | the course says | verdict | what is true | lesson | checks |\n"
            << "|---|---|---|---|---|---|\n";
        for (const Claim& c : all)
            if (c.place == place)
                out << "| " << c.id << " | " << cell(c.text) << " | " << c.verdict << " | " << cell(c.truth) << " | "
                    << lessons_cell(c) << " | " << checks_cell(c, run, numbers) << " |\n";
    }
    return out.str();
}

// Is a line as the pattern has it, where each number_here stands for what goes on to the next <br> or the cell's end?
bool matches(const std::string& line, const std::string& pattern) {
    std::size_t at = 0;
    for (std::size_t from = 0; from <= pattern.size();) {
        const std::size_t gap = std::min(pattern.find(number_here, from), pattern.size());
        const std::string part = pattern.substr(from, gap - from);
        if (line.compare(at, part.size(), part) != 0) return false;
        at += part.size();
        if (gap < pattern.size()) at = std::min({line.find("<br>", at), line.find(" |", at), line.size()});
        from = gap + 1;
    }
    return at == line.size();
}

void compare(const std::string& text, const std::string& pattern, const fs::path& file, Reasons& reasons) {
    std::istringstream lines(text), wanted(pattern);
    std::size_t n = 0;
    for (std::string line, want;;) {
        const bool more = bool(std::getline(lines, line)), more_wanted = bool(std::getline(wanted, want));
        ++n;
        if (!more && !more_wanted) return;
        if (more != more_wanted || !matches(line, want)) {
            reasons.add(file.filename().string() + ":" + std::to_string(n),
                        "is not what lessons/run claims would write: " + line.substr(0, 60));
            return;
        }
    }
}

std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

int main(int argc, char** argv) try {
    const fs::path here = fs::path(LOOKBACK_DATA_DIR).parent_path();
    Flags flags("lessons/run claims",
                "Makes lessons/claims.md: every claim of the course, with what the lessons measured.");
    std::string folder = "lookback-out", rows = (here / "claims.tsv").string(), to = (here / "claims.md").string();
    bool check = false;
    flags.add("--out", folder, "where the lessons' traces are", "DIR");
    flags.add("--check", check, "write nothing: is claims.md what would be written, but for its numbers?");
    flags.add("--rows", rows, "the rows", "FILE");
    flags.add("--page", to, "the page", "FILE");
    if (const std::optional<int> code = flags.parse(argc, argv)) return *code;

    Reasons reasons;
    const std::vector<Claim> all = read_claims(rows);
    const Run run = read_run(folder, reasons);
    judge(all, run, reasons);
    if (check && reasons.all.empty()) compare(contents(to), page(all, run, false), to, reasons);
    for (const std::string& reason : reasons.all) std::cerr << terminal::printable(reason) << '\n';
    if (!reasons.all.empty()) return 1;

    if (!check) {
        std::ofstream file(to, std::ios::binary);
        file << page(all, run, true);
        if (!file.flush()) {
            std::cerr << terminal::printable(to) << " can't be written\n";
            return 2;
        }
    }
    std::set<std::string> used, waiting;
    for (const Claim& c : all)
        for (const std::string& id : c.checks) (run.checks.contains(id) ? used : waiting).insert(id);
    std::cout << all.size() << " claims, " << used.size() << " checks in them"
              << (waiting.empty() ? "" : ", and " + std::to_string(waiting.size()) + " that only full runs make")
              << ": " << terminal::printable(to) << '\n';
} catch (const std::exception& e) {
    std::cerr << terminal::printable(e.what()) << '\n';
    return 2;
}
