// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fd.hpp"
#include "native/doorbell_pages.hpp"
#include "native/nic.hpp"
#include "native_proto.h"

namespace ordma::softdev {

// What a handler answers with.
class Reply {
 public:
  template <typename T>
  void put(const T& body) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.resize(sizeof body);
    std::memcpy(bytes_.data(), &body, sizeof body);
  }
  void append(std::string_view text);
  void lend(int fd) { fds_.push_back(fd); }  // stays open here until the reply is sent
  void give(Fd fd) {
    fds_.push_back(fd.get());
    owned_.push_back(std::move(fd));
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<const int> fds() const { return fds_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<int> fds_;
  std::vector<Fd> owned_;
};

// One client: its objects and its memory. Everything that comes from it is checked here or in the
// driver core; handles are looked up in this client's own tables only.
class Session {
 public:
  struct Host {
    std::vector<NativeNic*> nics;
    std::function<std::string()> counters;
  };

  Session(Host& host, pid_t pid) : host_(host), pid_(pid) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Answers one message. False: the connection is to be closed after the reply.
  [[nodiscard]] bool handle(std::span<const std::byte> message, std::vector<Fd> fds,
                            std::vector<std::byte>* reply, Reply* body);
  // Destroys all objects, in the order in which they depend on each other. Idempotent.
  void tear_down();

  [[nodiscard]] bool attached() const { return nic_ != nullptr; }
  // The descriptor that this client rings when the soft-device sleeps; -1 before HELLO.
  [[nodiscard]] int kick_fd() const { return kick_.get(); }

 private:
  friend struct SessionOps;  // the table of handlers

  // session.cpp
  int hello(const ordma_np_hello& req, Reply& reply);
  int query_port(Reply& reply);
  int query_gid(const ordma_np_gid_req& req, Reply& reply);
  int query_device(Reply& reply);
  int resolve_gid(const ordma_np_resolve& req, Reply& reply);
  int counters(const ordma_np_counters_req& req, Reply& reply);
  int page_fd(const ordma_np_handle& req, Reply& reply);

  // session_memory.cpp
  int buf_alloc(const ordma_np_buf_alloc& req, Reply& reply);
  int buf_map(const ordma_np_buf_map& req, Reply& reply);
  int buf_free(const ordma_np_handle& req, Reply& reply);
  int alloc_pd(Reply& reply);
  int dealloc_pd(const ordma_np_handle& req, Reply& reply);
  int reg_mr(const ordma_np_reg_mr& req, Reply& reply);
  int dereg_mr(const ordma_np_handle& req, Reply& reply);
  void destroy_mr(std::uint32_t handle);

  // session_cq.cpp
  int create_cq(const ordma_np_create_cq& req, Reply& reply);
  int resize_cq(const ordma_np_resize_cq& req, Reply& reply);
  int destroy_cq(const ordma_np_handle& req, Reply& reply);
  ordma_np_destroyed remove_cq(std::uint32_t handle);
  int create_channel(Reply& reply);
  int destroy_channel(const ordma_np_handle& req, Reply& reply);

  // session_srq.cpp
  int create_srq(const ordma_np_create_srq& req, Reply& reply);
  int modify_srq(const ordma_np_modify_srq& req, Reply& reply);
  int query_srq(const ordma_np_handle& req, Reply& reply);
  int destroy_srq(const ordma_np_handle& req, Reply& reply);
  ordma_np_destroyed remove_srq(std::uint32_t handle);

  // session_qp.cpp
  int create_qp(const ordma_np_create_qp& req, Reply& reply);
  int modify_qp(const ordma_np_qp_attr& req, Reply& reply);
  int query_qp(const ordma_np_handle& req, Reply& reply);
  int destroy_qp(const ordma_np_handle& req, Reply& reply);
  int attach_mcast(const ordma_np_mcast& req, Reply& reply);
  int detach_mcast(const ordma_np_mcast& req, Reply& reply);
  int check_qp(const ordma_np_create_qp& req, ordma_qp_init* init, Qp* qp);
  int setup_qp(const ordma_np_create_qp& req, const ordma_qp_init& init, Qp* qp);
  void release_qp(Qp* qp);
  ordma_np_destroyed remove_qp(std::uint32_t handle);

  // DMA address of this client's memory.
  [[nodiscard]] std::uint64_t dma(std::uint64_t va) const;
  // A queue or record: must be in a mapped buffer, aligned. 0 or errno.
  [[nodiscard]] int pin(std::uint64_t va, std::uint64_t bytes, std::uint64_t align);
  void unpin(std::uint64_t va, std::uint64_t bytes);

  Host& host_;
  pid_t pid_;
  NativeNic* nic_ = nullptr;
  std::uint32_t client_ = 0;  // user context, and bits 63:48 of DMA addresses
  Fd kick_;
  std::unique_ptr<EventSink> async_;
  std::unique_ptr<ClientMemory> memory_;
  std::unique_ptr<DoorbellPages> pages_;
  HandleTable<Pd> pds_;
  HandleTable<Mr> mrs_;
  HandleTable<Channel> channels_;
  HandleTable<Cq> cqs_;
  HandleTable<Srq> srqs_;
  HandleTable<Qp> qps_;
  std::vector<Fd> incoming_;  // descriptors of the message in hand
  std::string counters_text_;
};

}  // namespace ordma::softdev
