#include "process.hpp"
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace lookback {

using Clock = std::chrono::steady_clock;

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// A descriptor that is closed with its owner, and never inherited by accident.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { close(); }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

struct Pipe {
    Descriptor read, write;
    Pipe() {
        int ends[2];
        if (::pipe(ends) != 0) fail("pipe");
        for (int& end : ends) {  // above those that the child will have, so that none is overwritten
            const int high = ::fcntl(end, F_DUPFD_CLOEXEC, 10);
            ::close(std::exchange(end, high));
            if (high < 0) fail("fcntl");
        }
        read = Descriptor(ends[0]), write = Descriptor(ends[1]);
    }
};

void limit(int what, rlim_t soft, rlim_t hard) {
    const rlimit both{soft, hard};
    ::setrlimit(decltype(RLIMIT_AS)(what), &both);
}
void limit(int what, rlim_t value) { limit(what, value, value); }

// In the child, between fork and exec.
[[noreturn]] void become(const std::vector<std::string>& command, const Limits& limits, std::optional<uid_t> user,
                         const std::filesystem::path& folder, const std::array<int, 4>& descriptors) {
    ::setpgid(0, 0);
    for (int i = 0; i < 4; ++i) ::dup2(descriptors[std::size_t(i)], i);
    limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
    limit(RLIMIT_AS, limits.memory);
    limit(RLIMIT_FSIZE, 64 << 20);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 64);
    // Counted per user: for a user of several programs only "none at all" can be said.
    if (user || limits.processes == 1) limit(RLIMIT_NPROC, limits.processes);
    if (user && (::setgroups(0, nullptr) || ::setgid(*user) || ::setuid(*user))) ::_exit(126);
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted grader leaves nothing behind either
#endif
    if (::chdir(folder.c_str())) ::_exit(126);
    const char* path = std::getenv("PATH");
    const std::string path_line = std::string("PATH=") + (path ? path : "/usr/bin:/bin"),
                      home = "HOME=" + folder.string(), temporary = "TMPDIR=" + folder.string();
    std::string language = "LC_ALL=C.UTF-8";
    std::array<char*, 5> environment{const_cast<char*>(path_line.c_str()), const_cast<char*>(home.c_str()),
                                     const_cast<char*>(temporary.c_str()), language.data(), nullptr};
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::environ = environment.data();
    ::execvp(arguments[0], arguments.data());
    const std::string message = command[0] + ": " + std::strerror(errno) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(2, message.data(), message.size());
    ::_exit(127);
}

// The processes whose parent we are: after a run these are orphans that came to us as their subreaper.
std::vector<pid_t> children() {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const pid_t pid = pid_t(std::atoi(entry.path().filename().c_str()));
        if (pid <= 0) continue;
        std::ifstream file(entry.path() / "stat");
        std::string text;
        std::getline(file, text);
        const std::size_t name_end = text.rfind(')');  // the name before it may hold anything
        if (name_end == std::string::npos || name_end + 4 >= text.size()) continue;
        if (std::atoi(text.c_str() + name_end + 4) == ::getpid()) found.push_back(pid);
    }
    return found;
}

// Ends descendants that left the group. Each one's death brings its children to us, so this goes on until none is left.
unsigned end_strays() {
    unsigned count = 0;
    while (::waitpid(-1, nullptr, WNOHANG) >= 0) {
        for (pid_t pid : children()) {
            ::kill(pid, SIGKILL);
            if (::waitpid(pid, nullptr, 0) == pid) ++count;
        }
    }
    return count;
}

// Reads what is there; false at the end of the pipe. Keeps the first `keep` bytes, counts all.
bool drain(Descriptor& from, std::string& kept, std::size_t keep, std::size_t& total) {
    char buffer[1 << 16];
    for (;;) {
        const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        if (n == 0) return false;
        total += std::size_t(n);
        kept.append(buffer, std::min(std::size_t(n), keep - std::min(keep, kept.size())));
        if (total > keep) return true;  // let the caller look at the clock and at its limits
    }
}

}  // namespace

Sandbox::Sandbox(std::filesystem::path folder) : folder_(std::move(folder)) {
#ifdef __linux__
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_DUMPABLE, 0);  // no one reads the expectations out of this process
#endif
    ::signal(SIGPIPE, SIG_IGN);
    if (::geteuid() == 0) {
        const uid_t user = 61000 + uid_t(::getpid()) % 4000;  // nobody's: so a count of its processes counts only ours
        const pid_t trial = ::fork();
        if (trial == 0) ::_exit(::setgroups(0, nullptr) || ::setgid(user) || ::setuid(user));
        int status = 1;
        if (trial < 0 || ::waitpid(trial, &status, 0) != trial || status)
            throw std::runtime_error("root may not become another user here; run the grader as an ordinary one");
        user_ = user;
    }
    give(folder_);
}

void Sandbox::give(const std::filesystem::path& file) const {
    if (user_ && ::chown(file.c_str(), *user_, *user_)) fail("chown");
}

Outcome Sandbox::run(const std::vector<std::string>& command, const std::string& input, const Limits& limits) const {
    constexpr std::size_t shown = 1 << 14;
    Pipe in, out, answer;
    const auto start = Clock::now();
    const pid_t pid = ::fork();
    if (pid < 0) fail("fork");
    if (pid == 0)
        become(command, limits, user_, folder_, {in.read.get(), out.write.get(), out.write.get(), answer.write.get()});
    ::setpgid(pid, pid);  // whichever of the two is first
    in.read.close(), out.write.close(), answer.write.close();
    for (int fd : {in.write.get(), out.read.get(), answer.read.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);

    Outcome outcome;
    std::size_t sent = 0, printed = 0, answered = 0;
    int status = 0;
    rusage usage{};
    bool ended = false;
    const auto pump = [&] {
        if (out.read.open() && !drain(out.read, outcome.printed, shown, printed)) out.read.close();
        if (answer.read.open() && !drain(answer.read, outcome.answer, limits.answer, answered)) answer.read.close();
    };
    const auto stop = [&](Outcome::End end) {
        outcome.end = end;
        ::kill(-pid, SIGKILL);
        ::wait4(pid, &status, 0, &usage);
        ended = true;
    };
    while (!ended) {
        if (in.write.open()) {
            const ssize_t n = ::write(in.write.get(), input.data() + sent, input.size() - sent);
            if (n > 0) sent += std::size_t(n);
            if (sent == input.size() || (n < 0 && errno != EAGAIN)) in.write.close();
        }
        pump();
        if (::wait4(pid, &status, WNOHANG, &usage) == pid)
            ended = true;
        else if (printed > limits.printed)
            stop(Outcome::End::printed);
        else if (answered > limits.answer)
            stop(Outcome::End::answer);
        else if (Clock::now() - start > std::chrono::seconds(limits.wall_seconds))
            stop(Outcome::End::wall);
        else {
            std::array<pollfd, 3> waiting{pollfd{out.read.get(), POLLIN, 0}, pollfd{answer.read.get(), POLLIN, 0},
                                          pollfd{in.write.get(), POLLOUT, 0}};
            const bool quiet = !out.read.open() && !answer.read.open();  // only its end is still to come
            ::poll(waiting.data(), waiting.size(), quiet ? 1 : 20);
        }
    }
    ::kill(-pid, SIGKILL);
    pump();
    outcome.strays = end_strays();
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
    outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    outcome.mebibytes = double(usage.ru_maxrss) / 1024;
    if (outcome.end != Outcome::End::exited) return outcome;
    if (WIFEXITED(status)) {
        outcome.code = WEXITSTATUS(status);
    } else {
        outcome.code = WTERMSIG(status);
        const bool slow =
            outcome.code == SIGXCPU || (outcome.code == SIGKILL && outcome.cpu_seconds >= limits.cpu_seconds);
        outcome.end = slow ? Outcome::End::cpu : Outcome::End::signal;
    }
    return outcome;
}

std::string why(const Outcome& outcome, const Limits& limits) {
    const auto mebibytes = [](std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
    switch (outcome.end) {
        case Outcome::End::cpu:
            return "it was stopped after " + std::to_string(limits.cpu_seconds) + " s of computing (an endless loop?)";
        case Outcome::End::wall:
            return "it was stopped after " + std::to_string(limits.wall_seconds) + " s (it waits for something?)";
        case Outcome::End::printed:
            return "it was stopped after printing " + mebibytes(limits.printed);
        case Outcome::End::answer:
            return "it was stopped: its answer has more than " + mebibytes(limits.answer);
        case Outcome::End::exited:
            return "it ended by itself, with exit code " + std::to_string(outcome.code) + ", before it answered";
        case Outcome::End::signal:
            break;
    }
    switch (outcome.code) {
        case SIGSEGV:
            return "it was stopped by a segmentation fault (an index outside an array? endless recursion?)";
        case SIGABRT:
            return "it aborted (a failed assertion?)";
        case SIGFPE:
            return "it was stopped by an integer division by zero";
        case SIGXFSZ:
            return "it was stopped after writing too much to a file";
        default:
            return "it was stopped by signal " + std::to_string(outcome.code);
    }
}

}  // namespace lookback
