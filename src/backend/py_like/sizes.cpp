// Printing sizes and index maps.
#include "backend/py_like/sizes.h"

#include <algorithm>

#include "support/check.h"

namespace picokernel::backend::py_like {

using ir::DimMap;
using ir::DimPick;
using ir::IndexMap;

Sizes::Sizes(const ir::Module& m, std::span<const std::string> names) : table_(m.sizes) {
  for (size_t i = 0; i < names.size(); ++i) {
    const ir::Type& type = m.type(m.params()[i]);
    for (size_t d = 0; d < type.shape.size(); ++d) {
      const SizeNode& node = m.sizes[type.shape[d]];
      if (node.kind == SizeKind::symbol)
        symbols_.try_emplace(static_cast<uint32_t>(node.constant),
                             names[i] + ".shape[" + std::to_string(d) + "]");
    }
  }
}

std::string Sizes::operand(SizeId size) const {
  const SizeNode& n = table_[size];
  const bool bare = n.kind == SizeKind::symbol || n.kind == SizeKind::minimum ||
                    n.kind == SizeKind::maximum || table_.as_constant(size).value_or(-1) >= 0;
  return bare ? text(size) : "(" + text(size) + ")";
}

std::string Sizes::text(SizeId size) const {
  const SizeNode& n = table_[size];
  switch (n.kind) {
    case SizeKind::symbol: {
      const auto found = symbols_.find(static_cast<uint32_t>(n.constant));
      PK_CHECK(found != symbols_.end(), "no parameter has the size ", table_.to_string(size));
      return found->second;
    }
    case SizeKind::sum: {
      std::string text;
      const auto add = [&](bool negative, const std::string& term) {
        text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        text += term;
      };
      for (const auto& [term, coefficient] : n.terms) {
        const int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
        add(coefficient < 0,
            magnitude == 1 ? operand(term) : std::to_string(magnitude) + " * " + operand(term));
      }
      if (n.constant != 0 || text.empty())
        add(n.constant < 0, std::to_string(n.constant < 0 ? -n.constant : n.constant));
      return text;
    }
    case SizeKind::product: {
      std::string text;
      for (const auto& [term, unused] : n.terms)
        text += (text.empty() ? "" : " * ") + operand(term);
      return text;
    }
    case SizeKind::minimum:
    case SizeKind::maximum:
      return std::string(n.kind == SizeKind::minimum ? "min(" : "max(") + text(n.terms[0].first) +
             ", " + text(n.terms[1].first) + ")";
    case SizeKind::floordiv: {
      const std::string quotient = operand(n.terms[0].first) + " // " + operand(n.terms[1].first);
      if (table_.as_constant(n.terms[1].first).value_or(0) != 0) return quotient;
      return "(" + quotient + " if " + operand(n.terms[1].first) + " else 0)";
    }
  }
  PK_UNREACHABLE();
}

std::string Sizes::shape(std::span<const SizeId> sizes) const {
  std::string list = "(";
  for (const SizeId s : sizes) list += (list.size() > 1 ? ", " : "") + text(s);
  return list + (sizes.size() == 1 ? ",)" : ")");
}

namespace {

// An index into a dimension; `n - 2` of n is -2.
std::string index_text(Sizes& sizes, SizeId index, SizeId length) {
  const SizeId from_end = sizes.table().sub(index, length);
  const auto below = sizes.table().as_constant(from_end);
  const bool relative = below && *below < 0 && !sizes.table().as_constant(index);
  return relative ? std::to_string(*below) : sizes.text(index);
}

// One source dimension of a view: `1:-1`, `::2`.
class Slice {
 public:
  Slice(Sizes& sizes, const DimMap& d, SizeId length)
      : sizes_(sizes), table_(sizes.table()), d_(d), length_(length) {}

  std::string text() {
    const bool from_end = d_.step < 0;
    SizeId past_start = from_end ? table_.sub(length_, table_.constant(1)) : table_.constant(0);
    if (d_.start != past_start) out_ += index_text(sizes_, d_.start, length_);
    out_ += ":";
    const SizeId stop = table_.add(d_.start, table_.mul(d_.extent, table_.constant(d_.step)));
    if (from_end) {
      // A negative bound counts from the end in Python, so only a constant one can be told.
      const auto constant = table_.as_constant(stop);
      if (constant && *constant >= 0)
        out_ += std::to_string(*constant);
      else if (!constant || *constant < d_.step)
        rest_ = ":" + sizes_.text(d_.extent);
    } else if (stop != length_) {
      out_ += index_text(sizes_, stop, length_);
    }
    if (d_.step != 1) out_ += ":" + std::to_string(d_.step);
    return out_;
  }
  /// A second slice of the result that cuts what the first could not.
  const std::string& rest() const { return rest_; }

 private:
  Sizes& sizes_;
  SizeTable& table_;
  const DimMap& d_;
  SizeId length_;
  std::string out_, rest_;
};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += (text.empty() ? "" : ", ") + p;
  return text;
}

// Trailing `:` say nothing.
void trim(std::vector<std::string>& index) {
  while (!index.empty() && index.back() == ":") index.pop_back();
}

}  // namespace

ViewText view_text(Sizes& sizes, const ir::Module& m, const IndexMap& map, const ir::Type& source) {
  ViewText view;
  view.scalar = map.dims.empty();
  std::vector<std::string> index(source.shape.size(), ":");
  std::vector<bool> picked(source.shape.size());
  for (const DimPick& p : map.picks) {
    index[static_cast<size_t>(p.source)] =
        index_text(sizes, p.index, source.shape[static_cast<size_t>(p.source)]);
    picked[static_cast<size_t>(p.source)] = true;
  }
  bool cut = false, repeated = false;
  std::vector<std::string> rests(source.shape.size(), ":");
  for (const DimMap& d : map.dims) {
    if (d.source == DimMap::kNewAxis) {
      repeated = repeated || !m.sizes.is_one(d.extent);
      continue;
    }
    const auto s = static_cast<size_t>(d.source);
    Slice slice(sizes, d, source.shape[s]);
    index[s] = slice.text();
    if (!slice.rest().empty()) {
      rests[s] = slice.rest();
      cut = true;
    }
  }
  // The order in which the picked-free source dimensions appear.
  std::vector<int32_t> sources, ascending;
  for (const DimMap& d : map.dims)
    if (d.source != DimMap::kNewAxis) sources.push_back(d.source);
  ascending = sources;
  std::ranges::sort(ascending);
  std::vector<std::string> axes;  // `:` and None, in the view's order
  for (const DimMap& d : map.dims) axes.push_back(d.source == DimMap::kNewAxis ? "None" : ":");
  const bool new_axis = std::ranges::find(axes, "None") != axes.end();
  if (sources != ascending)
    for (const int32_t s : sources)
      view.order.push_back(
          static_cast<size_t>(std::ranges::find(ascending, s) - ascending.begin()));

  view.one_index = !cut && view.order.empty() && !repeated;
  if (view.one_index && new_axis) {
    // One index says it all: None goes where the new dimensions are.
    std::vector<std::string> merged;
    size_t next = 0;
    const auto picks = [&] {
      while (next < index.size() && picked[next]) merged.push_back(index[next++]);
    };
    for (const DimMap& d : map.dims) {
      picks();
      merged.push_back(d.source == DimMap::kNewAxis ? "None" : index[next++]);
    }
    picks();
    index = merged;
  }
  trim(index);
  view.index = joined(index);
  if (cut) {
    std::vector<std::string> second;
    for (size_t s = 0; s < rests.size(); ++s)
      if (!picked[s]) second.push_back(rests[s]);
    trim(second);
    view.index += "][" + joined(second);
  }
  if (!view.one_index && new_axis) {
    trim(axes);
    view.axes = joined(axes);
  }
  if (repeated) {
    std::vector<SizeId> shape;
    for (const DimMap& d : map.dims) shape.push_back(d.extent);
    view.broadcast = sizes.shape(shape);
  }
  return view;
}

std::string view_of(const std::string& base, const ViewText& view, std::string_view module) {
  std::string text = base;
  if (!view.index.empty()) text += "[" + view.index + (view.scalar ? ", ...]" : "]");
  if (!view.order.empty()) {
    text += ".transpose(";
    for (size_t i = 0; i < view.order.size(); ++i)
      text += (i ? ", " : "") + std::to_string(view.order[i]);
    text += ")";
  }
  if (!view.axes.empty()) text += "[" + view.axes + "]";
  return view.broadcast.empty()
             ? text
             : std::string(module) + ".broadcast_to(" + text + ", " + view.broadcast + ")";
}

}  // namespace picokernel::backend::py_like
