// SPDX-License-Identifier: BSD-2-Clause
#include "native/doorbell_pages.hpp"

#include <cerrno>

namespace ordma::softdev {

DoorbellPages::~DoorbellPages() {
  for (const auto& page : pages_) {
    ordma_cmd cmd;
    ordma_cmd_page_close(&cmd, page->slots.page);
    nic_.execute_destroy(cmd);
    nic_.page_changed(page->slots.page, false, false);  // also when the engine is dead
    nic_.remove_page(page->slots.page);
    nic_.put_number(ORDMA_IDS_PAGE, page->slots.page);
  }
}

int DoorbellPages::open_page() {
  std::uint32_t number = 0;
  int err = nic_.get_number(ORDMA_IDS_PAGE, &number);
  if (err != 0) return err;
  SharedMemory* const memory = nic_.add_page(number);
  err = memory == nullptr ? ENOMEM : 0;
  if (err == 0) {
    ordma_cmd cmd;
    ordma_cmd_page_open(&cmd, number, uctx_, false, 0);
    err = nic_.execute(cmd);
  }
  if (err != 0) {
    nic_.page_changed(number, false, false);
    nic_.remove_page(number);
    nic_.put_number(ORDMA_IDS_PAGE, number);
    return err;
  }
  auto page = std::make_unique<Page>();
  ordma_db_page_init(&page->slots, number, uctx_);
  page->fd = memory->fd();
  pages_.push_back(std::move(page));
  return 0;
}

int DoorbellPages::get(std::uint32_t count, DoorbellSlot* slot) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const auto& page : pages_) {
      const int first = ordma_db_slot_get(&page->slots, count);
      if (first < 0) continue;
      *slot = {page->slots.page, static_cast<std::uint32_t>(first), count};
      return 0;
    }
    if (const int err = open_page(); err != 0) return err;
  }
  return ENOSPC;
}

void DoorbellPages::put(const DoorbellSlot& slot) {
  for (const auto& page : pages_) {
    if (page->slots.page != slot.page) continue;
    for (std::uint32_t i = 0; i < slot.count; ++i) nic_.clear_slot(slot.page, slot.slot + i);
    ordma_db_slot_put(&page->slots, slot.slot, slot.count);
  }
}

int DoorbellPages::fd_of(std::uint32_t page_number) const {
  for (const auto& page : pages_) {
    if (page->slots.page == page_number) return page->fd;
  }
  return -1;
}

}  // namespace ordma::softdev
