// The text form back into modules.
#include <charconv>
#include <map>
#include <optional>

#include "ir/builder.h"
#include "ir/lexer.h"
#include "ir/text.h"
#include "ir/typing.h"

namespace picokernel::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, bool locate)
      : lexer_(text, file), file_(file), locate_(locate) {}

  std::vector<Module> file() {
    if (lexer_.accept("picokernel")) {
      const Token version = lexer_.expect(Token::Kind::number, "a version number");
      if (version.text != std::to_string(kTextVersion))
        lexer_.fail(version,
                    "version " + std::string(version.text) + " of the IR's text is not known",
                    {"this picokernel reads version " + std::to_string(kTextVersion)});
    }
    std::vector<Module> modules;
    while (!lexer_.at_end()) modules.push_back(function());
    return modules;
  }

 private:
  struct FunctionState {
    Module module;
    std::map<std::string, ValueId, std::less<>> values;
    std::map<std::string, uint32_t, std::less<>> symbols;
  };
  Module& m() { return state_->module; }

  Module function() {
    FunctionState state;
    state_ = &state;
    const Token level = lexer_.next();
    if (level.text != "graph" && level.text != "kernel")
      lexer_.fail(level, "expected `graph` or `kernel`, found `" + std::string(level.text) + "`");
    m().level = level.text == "kernel" ? Level::kernel : Level::graph;
    m().name = std::string(lexer_.expect(Token::Kind::global, "a name such as @f").text.substr(1));
    Builder builder(m());
    builder_ = &builder;
    lexer_.expect("(");
    for (bool first = true; !lexer_.accept(")"); first = false) {
      if (!first) lexer_.expect(",");
      const Token name = lexer_.expect(Token::Kind::value, "a parameter such as %x");
      lexer_.expect(":");
      define(name, builder.param(type(), display_name(name)));
    }
    std::vector<Type> results;
    if (lexer_.accept("->")) {
      lexer_.expect("(");
      do results.push_back(type());
      while (lexer_.accept(","));
      lexer_.expect(")");
    }
    if (lexer_.accept("where")) {
      do guard();
      while (lexer_.accept(","));
    }
    if (lexer_.accept("in")) {
      do range_check();
      while (lexer_.accept(","));
    }
    if (lexer_.accept("accuracy")) {
      const Token accuracy = lexer_.next();
      if (accuracy.text != "fast")
        lexer_.fail(accuracy, "expected `fast`, found `" + std::string(accuracy.text) + "`",
                    {"without `accuracy fast`, it is strict"});
      m().floats.accuracy = Accuracy::fast;
    }
    m().floats.fastmath = lexer_.accept("fastmath");
    for (const Type& t : results) m().results.push_back(m().types.intern(t));
    region(Module::body());
    return std::move(state.module);
  }

  void guard() {
    Guard g;
    g.left = size();
    const Token relation = lexer_.next();
    if (relation.text == "==")
      g.relation = Relation::eq;
    else if (relation.text == "!=")
      g.relation = Relation::ne;
    else if (relation.text == ">=")
      g.relation = Relation::ge;
    else
      lexer_.fail(relation, "expected ==, != or >=, found `" + std::string(relation.text) + "`");
    g.right = size();
    m().guards.push_back(g);
  }

  void range_check() {
    const Token name = lexer_.expect(Token::Kind::value, "a parameter such as %x");
    const ValueId v = use(name);
    lexer_.expect(":");
    const DType t = dtype();
    for (uint32_t i = 0; i < m().params().size(); ++i)
      if (m().params()[i] == v) m().range_checks.push_back({i, t});
  }

  // Types and sizes

  DType dtype() {
    const Token t = lexer_.next();
    const auto d = dtype_from_text(t.text);
    if (!d)
      lexer_.fail(t, "unknown type `" + std::string(t.text) + "`",
                  {"types: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"});
    return *d;
  }

  Type type() {
    Type t;
    if (lexer_.accept("ptr")) {
      t.kind = TypeKind::ptr;
      lexer_.expect("<");
      const Token space = lexer_.next();
      if (space.text == "global")
        t.space = Space::global;
      else if (space.text == "shared")
        t.space = Space::shared;
      else if (space.text == "local")
        t.space = Space::local;
      else
        lexer_.fail(space, "unknown memory space `" + std::string(space.text) + "`",
                    {"spaces: global shared local"});
      lexer_.expect(",");
      t.dtype = dtype();
      lexer_.expect(">");
      return t;
    }
    if (lexer_.accept("ref")) t.kind = TypeKind::ref;
    t.dtype = dtype();
    // `f32[]` and `f32` are one type for values: a scalar.
    if (lexer_.accept("["))
      for (bool first = true; !lexer_.accept("]"); first = false) {
        if (!first) lexer_.expect(",");
        t.shape.push_back(size());
      }
    return t;
  }

  SizeId size() {
    SizeId left = size_term();
    while (true) {
      if (lexer_.accept("+"))
        left = m().sizes.add(left, size_term());
      else if (lexer_.accept("-"))
        left = m().sizes.sub(left, size_term());
      else
        return left;
    }
  }
  SizeId size_term() {
    SizeId left = size_atom();
    while (true) {
      if (lexer_.accept("*"))
        left = m().sizes.mul(left, size_atom());
      else
        return left;
    }
  }
  // Counts what nests and is parsed by recursion: the limit keeps the stack from overflowing.
  class Nesting {
   public:
    Nesting(const Lexer& lexer, const Token& at, int& depth) : depth_(depth) {
      if (depth_ >= kMaxDepth)
        lexer.fail(at, "nested too deeply: the limit is " + std::to_string(kMaxDepth));
      ++depth_;
    }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    static constexpr int kMaxDepth = 200;
    int& depth_;
  };

  SizeId size_atom() {
    SizeTable& sizes = m().sizes;
    const Token t = lexer_.next();
    std::optional<Nesting> nesting;
    if (t.text == "-" || t.text == "(" || t.text == "min" || t.text == "max" ||
        t.text == "floordiv")
      nesting.emplace(lexer_, t, size_depth_);
    if (t.text == "-") {
      const SizeId zero = sizes.constant(0);
      return sizes.sub(zero, size_atom());
    }
    if (t.text == "(") {
      const SizeId inner = size();
      lexer_.expect(")");
      return inner;
    }
    if (t.kind == Token::Kind::number) return sizes.constant(integer<int64_t>(t));
    if (t.kind != Token::Kind::word)
      lexer_.fail(t, "expected a size, found `" + std::string(t.text) + "`");
    if (t.text == "min" || t.text == "max" || t.text == "floordiv") {
      lexer_.expect("(");
      const SizeId a = size();
      lexer_.expect(",");
      const SizeId b = size();
      lexer_.expect(")");
      return t.text == "min"   ? sizes.minimum(a, b)
             : t.text == "max" ? sizes.maximum(a, b)
                               : sizes.floordiv(a, b);
    }
    const auto number = static_cast<uint32_t>(state_->symbols.size());
    const auto [it, added] = state_->symbols.try_emplace(std::string(t.text), number);
    if (added)
      m().symbol_names.push_back(t.text == "n" + std::to_string(number) ? "" : std::string(t.text));
    return sizes.symbol(it->second);
  }

  // Values

  // Numbered values have no name of their own.
  static std::string display_name(const Token& t) {
    const std::string_view name = t.text.substr(1);
    return name.find_first_not_of("0123456789") == std::string_view::npos ? std::string()
                                                                          : std::string(name);
  }
  void define(const Token& name, ValueId v) {
    if (!state_->values.try_emplace(std::string(name.text), v).second)
      lexer_.fail(name, std::string(name.text) + " is defined twice");
    m().values[v].name = display_name(name);
  }
  ValueId use(const Token& name) {
    const auto it = state_->values.find(name.text);
    if (it == state_->values.end())
      lexer_.fail(name, std::string(name.text) + " is not defined before its use");
    return it->second;
  }
  Token value_token() { return lexer_.expect(Token::Kind::value, "a value such as %x"); }
  ValueId value() { return use(value_token()); }
  std::vector<ValueId> values() {
    std::vector<ValueId> list;
    if (lexer_.peek().kind != Token::Kind::value) return list;
    do list.push_back(value());
    while (lexer_.accept(","));
    return list;
  }

  template <class T>
  T integer(const Token& t) {
    T v{};
    const auto [end, code] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), v);
    if (code != std::errc() || end != t.text.data() + t.text.size())
      lexer_.fail(t,
                  "`" + std::string(t.text) + "` is no " +
                      (std::is_signed_v<T> ? "integer of 64 bits" : "unsigned integer of 64 bits"));
    return v;
  }

  uint64_t scalar_bits(DType t, const Token& token, bool negative) {
    std::string text = (negative ? "-" : "") + std::string(token.text);
    return visit(t, [&]<class T>(T*) -> uint64_t {
      if constexpr (std::is_same_v<T, bool>) {
        if (text != "true" && text != "false")
          lexer_.fail(token, "a bool constant is true or false");
        return text == "true";
      } else if constexpr (is_floating_type<T>) {
        if (text.starts_with("0x")) return std::strtoull(text.c_str(), nullptr, 16);
        Arithmetic<T> v{};
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
        if (code != std::errc() || end != text.data() + text.size())
          lexer_.fail(token, "`" + text + "` is no " + std::string(text_name(t)));
        return Scalar::of(T(v)).bits;
      } else {
        T v{};
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
        if (code != std::errc() || end != text.data() + text.size())
          lexer_.fail(token, "`" + text + "` is no " + std::string(text_name(t)));
        return Scalar::of(v).bits;
      }
    });
  }

  IndexMap map() {
    IndexMap map;
    lexer_.expect("[");
    while (!lexer_.accept("]")) {
      if (lexer_.accept("pick")) {
        do {
          DimPick p;
          p.source = static_cast<int32_t>(
              integer<int64_t>(lexer_.expect(Token::Kind::number, "a dimension")));
          lexer_.expect(":");
          p.index = size();
          map.picks.push_back(p);
        } while (lexer_.accept(","));
        continue;
      }
      if (!map.dims.empty()) lexer_.expect(",");
      DimMap d;
      if (lexer_.accept("new")) {
        lexer_.expect(":");
        d.extent = size();
      } else {
        d.source = static_cast<int32_t>(
            integer<int64_t>(lexer_.expect(Token::Kind::number, "a dimension, `new` or `pick`")));
        lexer_.expect(":");
        d.start = size();
        lexer_.expect(":");
        const bool negative = lexer_.accept("-");
        d.step =
            integer<int64_t>(lexer_.expect(Token::Kind::number, "a step")) * (negative ? -1 : 1);
        lexer_.expect(":");
        d.extent = size();
      }
      map.dims.push_back(d);
    }
    return map;
  }

  // Ops

  void region(BlockId block) {
    const Nesting nesting(lexer_, lexer_.peek(), region_depth_);
    const BlockId outer = builder_->insertion_block();
    builder_->set_insertion_block(block);
    lexer_.expect("{");
    while (!lexer_.accept("}")) op();
    builder_->set_insertion_block(outer);
  }

  ValueId index_param(BlockId block) {
    const Token name = value_token();
    const ValueId v = builder_->block_param(block, {.dtype = DType::i64});
    define(name, v);
    return v;
  }

  // `with %x = %init, ...`: parameters of the block from the values that they start with.
  void carried(BlockId block, std::vector<ValueId>& operands) {
    if (!lexer_.accept("with")) return;
    do {
      const Token name = value_token();
      lexer_.expect("=");
      const ValueId init = value();
      operands.push_back(init);
      define(name, builder_->block_param(block, m().type(init)));
    } while (lexer_.accept(","));
  }

  void op() {
    std::vector<Token> results;
    if (lexer_.peek().kind == Token::Kind::value) {
      do results.push_back(value_token());
      while (lexer_.accept(","));
      lexer_.expect("=");
    }
    const Token name = lexer_.next();
    const auto opcode = opcode_from_name(name.text);
    if (!opcode) {
      const auto near = nearest_opcode(name.text);
      lexer_.fail(name, "unknown op `" + std::string(name.text) + "`",
                  near ? std::vector{"did you mean `" + std::string(info(*near).name) + "`?"}
                       : std::vector<std::string>{});
    }
    const OpInfo& facts = info(*opcode);
    if (facts.level != Level::both && facts.level != m().level)
      lexer_.fail(name, "`" + std::string(facts.name) + "` is an op of " +
                            (m().level == Level::graph ? "kernels, not of graphs"
                                                       : "graphs, not of kernels"));

    std::vector<ValueId> operands;
    std::vector<BlockId> regions;
    std::vector<Type> stated;
    uint64_t attribute = 0;
    DType scalar_dtype = DType::i64;
    if (*opcode == Opcode::parallel) {
      regions = {builder_->new_block()};
      do index_param(regions[0]);
      while (lexer_.accept(","));
      lexer_.expect("in");
      operands = values();
      region(regions[0]);
    } else if (*opcode == Opcode::for_) {
      regions = {builder_->new_block()};
      index_param(regions[0]);
      lexer_.expect("=");
      operands.push_back(value());
      lexer_.expect("to");
      operands.push_back(value());
      lexer_.expect("step");
      operands.push_back(value());
      carried(regions[0], operands);
      region(regions[0]);
    } else if (*opcode == Opcode::while_) {
      regions = {builder_->new_block(), builder_->new_block()};
      carried(regions[0], operands);
      region(regions[0]);
      lexer_.expect("do");
      for (size_t i = 0; i < operands.size(); ++i) {
        if (i != 0) lexer_.expect(",");
        const Token param = value_token();
        define(param, builder_->block_param(regions[1], m().type(operands[i])));
      }
      region(regions[1]);
    } else if (*opcode == Opcode::if_) {
      operands.push_back(value());
      regions = {builder_->new_block(), builder_->new_block()};
      if (lexer_.accept(":")) {
        do stated.push_back(type());
        while (lexer_.accept(","));
      }
      region(regions[0]);
      if (lexer_.accept("else")) region(regions[1]);
    } else if (*opcode == Opcode::load) {
      operands.push_back(value());
      lexer_.expect("[");
      operands.push_back(value());
      lexer_.expect("]");
    } else if (*opcode == Opcode::store) {
      operands.push_back(value());
      lexer_.expect(",");
      operands.push_back(value());
      lexer_.expect("[");
      operands.push_back(value());
      lexer_.expect("]");
      attribute = lexer_.accept("nontemporal");
    } else if (facts.atomic()) {
      operands.push_back(value());
      lexer_.expect("[");
      operands.push_back(value());
      lexer_.expect("]");
      while (lexer_.accept(",")) operands.push_back(value());
    } else {
      if (facts.operands != 0) operands = values();  // else the next line's results would be read
      std::optional<Token> literal;
      bool negative = false;
      switch (facts.attribute) {
        case Attribute::scalar:
          negative = lexer_.accept("-");
          literal = lexer_.next();
          break;
        case Attribute::size:
          attribute = size().value;
          break;
        case Attribute::map:
          attribute = m().maps.push(map()).value;
          break;
        case Attribute::number:
          attribute = static_cast<uint64_t>(
              integer<int64_t>(lexer_.expect(Token::Kind::number, "a number")));
          break;
        case Attribute::none:
        case Attribute::flag:
          break;
      }
      if (facts.rule == Rule::explicit_) {
        lexer_.expect(":");
        stated.push_back(type());
      }
      if (literal) {
        scalar_dtype = stated[0].dtype;
        attribute = scalar_bits(scalar_dtype, *literal, negative);
      }
    }
    const Inferred inferred = infer(m(), *opcode, operands, attribute, stated);
    if (!inferred.ok()) lexer_.fail(name, inferred.error);
    if (inferred.results.size() != results.size())
      lexer_.fail(name, "`" + std::string(facts.name) + "` has " +
                            std::to_string(inferred.results.size()) + " results, not " +
                            std::to_string(results.size()));
    builder_->set_location(location(name));
    const OpId id = builder_->op(*opcode, std::move(operands), attribute, std::move(stated));
    m().ops[id].regions = std::move(regions);
    m().ops[id].scalar_dtype = scalar_dtype;
    for (size_t i = 0; i < results.size(); ++i) define(results[i], m().ops[id].results[i]);
  }

  // loc("file":line:column) or loc("file":line:column-end)
  Location location(const Token& op) {
    Location where;
    if (!lexer_.accept("loc")) {
      if (locate_)
        where = {.file = file_,
                 .line = op.line,
                 .column = op.column,
                 .end_column = op.column + static_cast<uint32_t>(op.text.size())};
      return where;
    }
    lexer_.expect("(");
    where.file = lexer_.unquote(lexer_.expect(Token::Kind::string, "a file name in quotes"));
    lexer_.expect(":");
    where.line =
        static_cast<uint32_t>(integer<int64_t>(lexer_.expect(Token::Kind::number, "a line")));
    lexer_.expect(":");
    where.column =
        static_cast<uint32_t>(integer<int64_t>(lexer_.expect(Token::Kind::number, "a column")));
    if (lexer_.accept("-"))
      where.end_column =
          static_cast<uint32_t>(integer<int64_t>(lexer_.expect(Token::Kind::number, "a column")));
    lexer_.expect(")");
    return where;
  }

  Lexer lexer_;
  std::string file_;
  bool locate_;
  int region_depth_ = 0, size_depth_ = 0;
  FunctionState* state_ = nullptr;
  Builder* builder_ = nullptr;
};

}  // namespace

std::vector<Module> parse(std::string_view text, const std::string& file, bool locate) {
  return Parser(text, file, locate).file();
}

}  // namespace picokernel::ir
