// SPDX-License-Identifier: BSD-2-Clause
#include "sandbox.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "options.hpp"

namespace fs = std::filesystem;

namespace ordma::cli {
namespace {

void check(int rc, const std::string& what) {
  if (rc != 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool ok =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int err = errno;
  if (fd >= 0) {
    ::close(fd);
  }
  if (!ok) {
    throw std::system_error(err, std::generic_category(), path);
  }
}

// The user keeps his own ids inside: files, sockets and ptrace checks look the same from outside.
void map_own_ids(uid_t uid, gid_t gid) {
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1");
  write_file("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1");
}

void bind(const fs::path& from, const fs::path& to, bool directory) {
  if (directory) {
    fs::create_directory(to);
  } else {
    const int fd = ::open(to.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    check(fd < 0 ? -1 : 0, to.string());
    ::close(fd);
  }
  check(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr),
        "bind " + from.string());
}

// A user who may not create /dev/infiniband gets a /dev of his own: every entry bound again, plus
// ours.
void build_dev(const fs::path& stage, unsigned nics) {
  check(::mount("tmpfs", stage.c_str(), "tmpfs", MS_NOSUID, "mode=0755"), "tmpfs for /dev");
  for (const auto& entry : fs::directory_iterator("/dev")) {
    const fs::path name = entry.path().filename();
    const fs::file_status st = entry.symlink_status();
    if (name == "infiniband") {
      continue;
    }
    if (fs::is_symlink(st)) {
      fs::create_symlink(fs::read_symlink(entry.path()), stage / name);
    } else {
      bind(entry.path(), stage / name, fs::is_directory(st));
    }
  }
  fs::create_directory(stage / "infiniband");
  for (unsigned nic = 0; nic < nics; ++nic) {
    bind("/dev/null", stage / "infiniband" / ("uverbs" + std::to_string(nic)), false);
  }
}

void enter_mounts(const fs::path& sysfs, unsigned nics) {
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
  const std::string lower = "lowerdir=" + (sysfs / "class").string() + ":/sys/class";
  check(::mount("overlay", "/sys/class", "overlay", MS_RDONLY, lower.c_str()),
        "overlay on /sys/class");
  // The overlay makes the directories; devices that the host has in them stay out of sight.
  for (const char* dir : {"class/infiniband", "class/infiniband_verbs"}) {
    const fs::path to = fs::path("/sys") / dir;
    check(::mount((sysfs / dir).c_str(), to.c_str(), nullptr, MS_BIND, nullptr),
          "bind " + to.string());
  }
  // Any directory will do as the place where the new /dev is put together.
  const fs::path stage = "/tmp";
  build_dev(stage, nics);
  check(::mount(stage.c_str(), "/dev", nullptr, MS_MOVE, nullptr), "mount on /dev");
}

}  // namespace

const char* sandbox_name(Sandbox mode) {
  switch (mode) {
    case Sandbox::kMountNamespace:
      return "mount namespace";
    case Sandbox::kUserNamespace:
      return "user namespace";
    case Sandbox::kPreload:
      return "preload";
  }
  return "?";
}

Sandbox enter_sandbox(const fs::path& sysfs, unsigned nics, bool force_preload,
                      std::string& why_preload) {
  if (force_preload) {
    why_preload = "asked for";
    return Sandbox::kPreload;
  }
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const bool plain = uid == 0 && ::unshare(CLONE_NEWNS) == 0;
  if (!plain && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    why_preload = std::string("unshare: ") + std::strerror(errno);
    return Sandbox::kPreload;
  }
  const fs::path cwd = fs::current_path();
  try {
    if (!plain) {
      map_own_ids(uid, gid);
    }
    enter_mounts(sysfs, nics);
  } catch (const std::system_error& e) {
    // Half-made mounts stay private to this process; the preload library makes up for what is
    // missing.
    ::umount2("/tmp", MNT_DETACH);
    why_preload = e.what();
    return Sandbox::kPreload;
  }
  // A working directory below /dev or /sys/class would still be the old one.
  if (::chdir(cwd.c_str()) != 0) {
    throw Error("working directory " + cwd.string() + " is gone");
  }
  return plain ? Sandbox::kMountNamespace : Sandbox::kUserNamespace;
}

Sandbox probe_sandbox(std::string& why_preload) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    throw Error(std::string("pipe: ") + std::strerror(errno));
  }
  char base[] = "/tmp/ordma-probe-XXXXXX";
  if (::mkdtemp(base) == nullptr) {
    throw Error(std::string("/tmp: ") + std::strerror(errno));
  }
  fs::create_directories(fs::path(base) / "class/infiniband");
  fs::create_directories(fs::path(base) / "class/infiniband_verbs");
  const pid_t child = ::fork();
  if (child == 0) {
    std::string why;
    const Sandbox mode = enter_sandbox(base, 1, false, why);
    const char code = static_cast<char>('0' + static_cast<int>(mode));
    const std::string text = code + why;
    const ssize_t n = ::write(fds[1], text.data(), text.size());
    ::_exit(n > 0 ? 0 : 1);
  }
  ::close(fds[1]);
  char text[256] = {};
  const ssize_t n = ::read(fds[0], text, sizeof(text) - 1);
  ::close(fds[0]);
  ::waitpid(child, nullptr, 0);
  fs::remove_all(base);
  if (n < 1) {
    why_preload = "the probe ended early";
    return Sandbox::kPreload;
  }
  why_preload.assign(text + 1, static_cast<std::size_t>(n) - 1);
  return static_cast<Sandbox>(text[0] - '0');
}

}  // namespace ordma::cli
