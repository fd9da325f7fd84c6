#pragma once

// The border between the program and its LibTorch part, a shared object it loads on demand.

namespace adjoin::cli {

/// The one symbol of the shared object. On failure it writes "what" and the ErrorKind through the
/// pointers and returns -1: exceptions do not cross the border.
using TorchEntry = int (*)(const char* command, int count, const char* const* args, char* message,
                           int message_size, int* kind);

inline constexpr char kTorchEntry[] = "adjoin_torch_command";
inline constexpr char kTorchPart[] = "libadjoin_torch.so";
inline constexpr int kFailed = -1;

}  // namespace adjoin::cli
