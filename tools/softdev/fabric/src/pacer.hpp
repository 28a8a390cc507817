// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace ordma::fabric {

// Serialises frames onto a wire of rate_mbps, exactly: the instant at which the wire falls idle is
// free_ns_ + remainder_ / rate_mbps nanoseconds, so no rounding error builds up over a stream.
class Pacer {
 public:
  // Bits on the wire are counted in thousandths, because 1 Mb/s * 1 ns is 1/1000 bit.
  static constexpr std::uint64_t kMilliBitsPerByte = 8000;

  // Bytes that have not left yet, rounded up.
  [[nodiscard]] std::uint64_t backlog_bytes(std::uint64_t now_ns, std::uint64_t rate_mbps) const {
    if (rate_mbps == 0 || (free_ns_ < now_ns) || (free_ns_ == now_ns && remainder_ == 0)) {
      return 0;
    }
    const std::uint64_t milli_bits = (free_ns_ - now_ns) * rate_mbps + remainder_;
    return (milli_bits + kMilliBitsPerByte - 1) / kMilliBitsPerByte;
  }

  // Queues `bytes` behind what is there; returns when the last bit has left, rounded up.
  std::uint64_t depart(std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t rate_mbps) {
    if (rate_mbps == 0) {
      return now_ns;
    }
    if (free_ns_ < now_ns) {
      free_ns_ = now_ns;
      remainder_ = 0;
    }
    const std::uint64_t milli_bits = remainder_ + bytes * kMilliBitsPerByte;
    free_ns_ += milli_bits / rate_mbps;
    remainder_ = milli_bits % rate_mbps;
    return free_ns_ + (remainder_ != 0 ? 1 : 0);
  }

  // A changed rate makes the old fraction meaningless.
  void rate_changed() { remainder_ = 0; }

 private:
  std::uint64_t free_ns_ = 0;
  std::uint64_t remainder_ = 0;
};

}  // namespace ordma::fabric
