// A checksum that takes as long as reading the memory.  It finds any change within one word, and
// other damage but for one case in 2^32 or fewer; it is no protection against intent.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace widemargin {

// Words take turns in lanes, so that the loop is vectors; a lane mixes as MurmurHash does.
struct Checksum {
  static constexpr std::int64_t lanes = 32;
  std::array<std::uint32_t, lanes> lane{};

  void add(const std::uint8_t* bytes, std::int64_t n) {
    constexpr std::int64_t stripe = 4 * lanes;
    for (; n >= stripe; bytes += stripe, n -= stripe) mix(bytes);
    std::uint8_t rest[stripe] = {};
    if (n) std::memcpy(rest, bytes, n);
    mix(rest);
  }

 private:
  void mix(const std::uint8_t* bytes) {
    std::uint32_t word[lanes];
    std::memcpy(word, bytes, sizeof word);
    for (std::int64_t k = 0; k < lanes; ++k) {
      const std::uint32_t mixed = lane[k] ^ word[k];
      lane[k] = (mixed << 13 | mixed >> 19) * 0x9E3779B1u + 0x85EBCA77u;
    }
  }
};

}  // namespace widemargin
