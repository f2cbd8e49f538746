#include "layouts/base/visible.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

TEST(VisibleTest, WhatTerminalsActOnIsShown) {
  EXPECT_EQ(Visible("\033[2J\033]0;title\007"), "\\u001b[2J\\u001b]0;title\\u0007");
  EXPECT_EQ(Visible(std::string_view("a\0b\r\x7f", 5)), "a\\u0000b\\u000d\\u007f");
  EXPECT_EQ(Visible("\u009b2J"), "\\u009b2J") << "the same sequence in one character";
  EXPECT_EQ(Visible("abc\u202edef\u2066"), "abc\\u202edef\\u2066") << "text that runs backwards";
}

TEST(VisibleTest, OtherTextStays) {
  EXPECT_EQ(Visible(""), "");
  EXPECT_EQ(Visible("two\tcolumns\n"), "two\tcolumns\n");
  EXPECT_EQ(Visible("Schicht-3/Größe/卷积/слой/🙂"), "Schicht-3/Größe/卷积/слой/🙂");
}

TEST(VisibleTest, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(Visible("\xff"), "\\xff");
  EXPECT_EQ(Visible("\xc3"), "\\xc3") << "cut";
  EXPECT_EQ(Visible("\xc0\x9b"), "\\xc0\\x9b") << "longer than need be";
  EXPECT_EQ(Visible("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(Visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(Visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
  EXPECT_EQ(Visible("\x9b"
                    "2J"),
            "\\x9b2J");
}

TEST(VisibleTest, LinesStayLines) { EXPECT_EQ(VisibleLine("a\nb\tc\033"), "a\\nb\\tc\\u001b"); }

TEST(VisibleTest, CharactersAreNotCut) {
  EXPECT_EQ(Shortened("abc", 2), "ab");
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("aé", 2), "a");
  EXPECT_EQ(Shortened("é", 0), "");
}

}  // namespace
}  // namespace tilesmith
