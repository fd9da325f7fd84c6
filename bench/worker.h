#pragma once

// The worker side of a bench: one JSON object per line in, one out. {"op": "quit"} ends it; what
// goes wrong is answered as {"error": TEXT}.

#include <iostream>
#include <string>

#include "adjoin/core/json.h"
#include "adjoin/core/threads.h"

namespace adjoin::bench {

/// Answers every line with `answer(op, request)`.
template <class Answer>
int serve(Answer answer) {
  keep_freed_memory();
  for (std::string line; std::getline(std::cin, line);) {
    Json reply;
    try {
      const Json request = parse_json(line, "request");
      const auto op = request.at("op").get<std::string>();
      if (op == "quit") return 0;
      reply = answer(op, request);
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace adjoin::bench
