// What code says when it refuses something.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "layouts/base/error.h"

namespace tilesmith {

// The message of the Error that `action` throws, whose code must be `code`.
template <typename Action>
std::string Refusal(ErrorCode code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

}  // namespace tilesmith
