// The text parser alone under the sanitizers: random edits of the seeds, in buffers of exactly the
// sizes that `measure_svmlight` says.  `make fuzz` compiles and runs it; see README.md.
//
//     parser_sanitized SECONDS SEED_FILE...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../cpp/svmlight.hpp"

using namespace widemargin;

template <class Value, class Index>
void parse(const std::string& text, bool labels_are_text) {
  const auto size = std::int64_t(text.size());
  // On the heap and without a terminating zero, so that a byte too far is seen.
  const std::unique_ptr<char[]> bytes(new char[text.size()]);
  std::copy(text.begin(), text.end(), bytes.get());
  const SvmlightSize most = measure_svmlight(bytes.get(), size);
  const auto n = std::size_t(most.rows);
  std::vector<double> label(n);
  std::vector<std::int64_t> span(2 * n), qid(n), end(n);
  std::vector<Index> index(std::size_t(most.values));
  std::vector<Value> value(std::size_t(most.values));
  SvmlightRows<Value, Index> rows{};
  rows.label = labels_are_text ? nullptr : label.data();
  rows.span = labels_are_text ? span.data() : nullptr;
  rows.qid = qid.data(), rows.end = end.data();
  rows.index = index.data(), rows.value = value.data();
  const SvmlightResult r = SvmlightParser<Value, Index>(bytes.get(), size, rows).parse();
  if (r.rows > most.rows || r.values > most.values) std::abort();
}

int main(int argc, char** argv) {
  std::vector<std::string> seeds;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) return 2;
  std::mt19937_64 random(0);
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  static const char common[] = "0123456789 :.-+eE#,\n\r\tqid\0naninf\x7f\xff";
  const std::string bytes(common, sizeof common - 1);  // the zero in it included
  unsigned long long runs = 0;
  while (std::chrono::steady_clock::now() < until)
    for (int batch = 0; batch < 1000; ++batch, ++runs) {
      std::string text = seeds[below(seeds.size())];
      for (std::size_t edits = below(8); edits > 0 && !text.empty(); --edits) {
        const std::size_t at = below(text.size());
        const char byte = below(2) ? bytes[below(bytes.size())] : char(random());
        if (const std::size_t how = below(4); how == 0)
          text.erase(at, 1 + below(8));
        else if (how == 1)
          text.insert(at, 1, byte);
        else if (how == 2)
          text += text.substr(at, 1 + below(16));
        else
          text[at] = byte;
      }
      const bool labels_are_text = below(2);
      below(2) ? parse<double, std::int32_t>(text, labels_are_text)
               : parse<float, std::int64_t>(text, labels_are_text);
    }
  std::printf("%llu texts, no finding\n", runs);
}
