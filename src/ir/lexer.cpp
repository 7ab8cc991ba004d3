// Tokens of the text form. A comment runs from // to the end of the line.
#include "ir/lexer.h"

#include <algorithm>
#include <cctype>

namespace picokernel::ir {
namespace {

// Names may be any of Python's: bytes of UTF-8 beyond ASCII belong to them.
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
}
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

void Lexer::advance() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++position_;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++position_;
    } else if (text_.substr(position_).starts_with("//")) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      break;
    }
  }
  token_ = {.kind = Token::Kind::end,
            .text = "end of file",
            .line = line_,
            .column = static_cast<uint32_t>(position_ - line_start_ + 1)};
  if (position_ == text_.size()) return;
  const size_t start = position_;
  const auto take_while = [&](auto&& accept) {
    while (position_ < text_.size() && accept(text_[position_])) ++position_;
  };
  const char c = text_[position_++];
  if (c == '%' || c == '@') {
    token_.kind = c == '%' ? Token::Kind::value : Token::Kind::global;
    take_while(is_word);
  } else if (is_digit(c)) {
    token_.kind = Token::Kind::number;
    // 12, 0x7fc00001, 2.5, 1e-07
    take_while([&](char x) {
      const char before = text_[position_ - 1];
      return is_word(x) || x == '.' ||
             ((x == '+' || x == '-') && before == 'e' && !text_.substr(start).starts_with("0x"));
    });
  } else if (is_word(c)) {
    token_.kind = Token::Kind::word;
    take_while(is_word);
  } else if (c == '"') {
    token_.kind = Token::Kind::string;
    take_while([&](char x) { return x != '\n' && !(x == '"' && text_[position_ - 1] != '\\'); });
    if (position_ < text_.size() && text_[position_] == '"') ++position_;
  } else {
    token_.kind = Token::Kind::punctuation;
    const std::string_view two = text_.substr(start, 2);
    if (two == "->" || two == "==" || two == "!=" || two == ">=") ++position_;
  }
  token_.text = text_.substr(start, position_ - start);
}

Token Lexer::next() {
  const Token token = token_;
  if (at_end()) fail(token, "unexpected end of file");
  advance();
  return token;
}

bool Lexer::accept(std::string_view text) {
  if (at_end() || token_.text != text) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text))
    fail(token_, "expected `" + std::string(text) + "`, found `" + std::string(token_.text) + "`");
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind)
    fail(token_, "expected " + std::string(what) + ", found `" + std::string(token_.text) + "`");
  return next();
}

std::string Lexer::unquote(const Token& string) {
  std::string text;
  for (size_t i = 1; i + 1 < string.text.size(); ++i) {
    char c = string.text[i];
    if (c == '\\' && i + 2 < string.text.size()) {
      c = string.text[++i];
      if (c == 'n') c = '\n';
    }
    text += c;
  }
  return text;
}

void Lexer::fail(const Token& at, std::string message, std::vector<std::string> notes) const {
  throw CompileError(
      Diagnostic{.severity = Severity::error,
                 .location = {.file = file_,
                              .line = at.line,
                              .column = at.column,
                              .end_column = at.column + static_cast<uint32_t>(at.text.size())},
                 .message = std::move(message),
                 .notes = std::move(notes)});
}

}  // namespace picokernel::ir
