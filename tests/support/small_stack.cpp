#include "tests/support/small_stack.hpp"
#include <pthread.h>
#include <stdexcept>

namespace lookback::test {

namespace {
struct Job {
    const std::function<void()>& f;
    std::exception_ptr thrown;
};
void* run(void* data) {
    Job& job = *static_cast<Job*>(data);
    try {
        job.f();
    } catch (...) {
        job.thrown = std::current_exception();
    }
    return nullptr;
}
}  // namespace

void on_small_stack(const std::function<void()>& f) {
    Job job{f, nullptr};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, run, &job)) throw std::runtime_error("no thread could be started");
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    if (job.thrown) std::rethrow_exception(job.thrown);
}

}  // namespace lookback::test
