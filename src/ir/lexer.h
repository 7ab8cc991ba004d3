// Tokens of the text form, with their places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <picokernel/diagnostic.h>

namespace picokernel::ir {

struct Token {
  enum class Kind : uint8_t { word, number, value, global, string, punctuation, end };
  Kind kind = Kind::end;
  std::string_view text;  // value and global: with their sigil; string: with its quotes
  uint32_t line = 1, column = 1;
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
    advance();
  }

  const Token& peek() const { return token_; }
  bool at_end() const { return token_.kind == Token::Kind::end; }
  Token next();
  bool accept(std::string_view text);
  void expect(std::string_view text);
  Token expect(Token::Kind kind, std::string_view what);
  static std::string unquote(const Token& string);

  /// Throws CompileError at the token.
  [[noreturn]] void fail(const Token& at, std::string message,
                         std::vector<std::string> notes = {}) const;

 private:
  void advance();

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  size_t line_start_ = 0;
  Token token_;
};

}  // namespace picokernel::ir
