// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <thread>

namespace ordma::cli {

// Copies what a child writes into a pipe to stderr, line by line with a prefix, so that two
// programs on one terminal stay readable.
class Forwarder {
 public:
  explicit Forwarder(std::string prefix);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // In the child, before exec: makes the pipe its stdout and stderr.
  void attach_child() const;
  // In the parent, after fork.
  void start();
  // Copies what is left in the pipe; a grandchild that keeps the pipe open is not waited for.
  void finish();

 private:
  void copy();
  void print(std::string_view line) const;

  std::string prefix_;
  int pipe_read_ = -1;
  int pipe_write_ = -1;
  int stop_ = -1;
  std::thread thread_;
};

}  // namespace ordma::cli
