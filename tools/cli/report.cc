#include "tools/cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph_tuner/planner/work.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/base/visible.h"
#include "tools/cli/args.h"
#include "tools/cli/streams.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kGap = 2;          // between two columns
constexpr size_t kMinFirst = 12;    // of the first column where it is cut
constexpr size_t kMinWrapped = 24;  // of a column where it is wrapped,
constexpr size_t kNarrowest = 12;   // and where even so there is no room

Json ToJsonValue(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (requires { value.begin()->first; }) {
          Json members = Json::object();
          for (const auto& [name, number] : value) members[name] = number;
          return members;
        } else {
          return value;
        }
      },
      cell.value);
}

bool IsText(const Cell& cell) { return std::holds_alternative<std::string>(cell.value); }

// Several things in words, which text and CSV show as they stand in the cell.
bool IsList(const Cell& cell) {
  return std::holds_alternative<std::vector<std::string>>(cell.value) ||
         std::holds_alternative<std::vector<int64_t>>(cell.value) ||
         std::holds_alternative<Cell::Named<int64_t>>(cell.value) ||
         std::holds_alternative<Cell::Named<double>>(cell.value);
}

size_t TotalWidth(const std::vector<size_t>& columns, const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t c : columns) total += widths[c] + (c == columns.front() ? 0 : kGap);
  return total;
}

std::vector<std::string> WrappedLines(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::istringstream wrapped(Wrapped(text, width, 0));
  for (std::string line; std::getline(wrapped, line);) lines.push_back(line);
  return lines;
}

// Of at most `width` where that is not 0, all of them `indent` from the left, where the first one stands
// already.
std::string InLines(const std::string& text, size_t width, size_t indent) {
  if (width <= indent + kMinWrapped || indent + text.size() <= width) return text;
  return Wrapped(text, width, indent);
}

std::string CutTo(const std::string& text, size_t width) {
  return text.size() <= width ? text : fmt::format("{}…", Shortened(text, width - 1));
}

std::string CsvField(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell.value)) return "";
  std::string text = IsText(cell)   ? std::get<std::string>(cell.value)
                     : IsList(cell) ? cell.text
                                    : ToJsonValue(cell).dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// "-0.00" is none.
std::string WithoutSignOfZero(const std::string& text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  return has_sign && text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

}  // namespace

Cell TextCell(std::string text) { return {text, text}; }
Cell CountCell(int64_t value) { return {value, fmt::format("{}", value)}; }
Cell RealCell(double value, int decimals) { return {value, fmt::format("{:.{}f}", value, decimals)}; }
Cell MillisecondsCell(double seconds) { return {seconds, MillisecondsText(seconds)}; }
Cell KnownMillisecondsCell(double seconds) { return seconds > 0 ? MillisecondsCell(seconds) : NoCell(); }

Cell MebibytesCell(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / static_cast<double>(1 << 20);
  const int decimals = mib >= 1 || bytes == 0 ? 1 : mib >= 0.1 ? 2 : mib >= 0.01 ? 3 : 4;
  return {bytes, fmt::format("{:.{}f}", mib, decimals)};
}
Cell GflopCell(double flops) {
  const double gflop = flops * 1e-9;
  int decimals = 3;
  for (double unit = 0.1; gflop > 0 && gflop < unit && decimals < 9; unit /= 10) ++decimals;
  return RealCell(gflop, decimals);
}
Cell RatioCell(double ratio) { return RealCell(ratio, 2); }
Cell PercentCell(double fraction) { return {fraction, fmt::format("{:.0f}%", fraction * 100)}; }
Cell ChangeCell(double fraction) {
  return {fraction, WithoutSignOfZero(fmt::format("{:+.1f}%", fraction * 100))};
}
Cell NoCell() { return {std::monostate(), "-"}; }
Cell ListCell(std::vector<double> values) {
  std::string text = fmt::format("{} values", values.size());
  return {std::move(values), std::move(text)};
}

Cell NamesCell(std::vector<std::string> names) {
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  return {std::move(names), std::move(text)};
}
Cell CountsCell(Cell::Named<int64_t> counts) {
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [name, count] : counts) texts.push_back(fmt::format("{} {}", name, count));
  return {std::move(counts), fmt::format("{}", fmt::join(texts, ", "))};
}
Cell KnobsCell(const Config& config) { return {config.knobs(), config.ToString()}; }

void Table::AddRow(std::vector<Cell> cells) {
  TILESMITH_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(), columns_.size());
  for (Cell& cell : cells) cell.text = VisibleLine(cell.text);
  rows_.push_back(std::move(cells));
}

std::vector<Table::ColumnText> Table::ColumnTexts(size_t width) const {
  std::vector<ColumnText> texts;
  for (size_t c = 0; c < columns_.size(); ++c) {
    ColumnText text{.widest = columns_[c].title.size()};
    bool has_words = false, has_numbers = false;
    for (const auto& row : rows_) {
      text.widest = std::max(text.widest, row[c].text.size());
      const bool words = IsText(row[c]) || IsList(row[c]);
      has_words = has_words || words;
      has_numbers = has_numbers || !(words || std::holds_alternative<std::monostate>(row[c].value));
    }
    text.left = has_words && !has_numbers;
    text.wraps = c != 0 && text.left && columns_[c].rank == 0;
    text.needed = c == 0       ? std::min(text.widest, std::max(kMinFirst, width * 3 / 5))
                  : text.wraps ? std::min(text.widest, kMinWrapped)
                               : text.widest;
    texts.push_back(text);
  }
  return texts;
}

std::vector<size_t> Table::ShownColumns(const std::vector<ColumnText>& texts, size_t width) const {
  std::vector<size_t> shown, needed;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const bool empty =
        !rows_.empty() && std::ranges::all_of(rows_, [&](const auto& row) { return row[c].text.empty(); });
    if (c == 0 || !(empty || columns_[c].title.empty())) shown.push_back(c);
    needed.push_back(texts[c].needed);
  }
  while (width > 0 && shown.size() > 1 && TotalWidth(shown, needed) > width) {
    const auto last = std::max_element(shown.begin() + 1, shown.end(), [&](size_t a, size_t b) {
      return columns_[a].rank <= columns_[b].rank;
    });
    if (columns_[*last].rank == 0) break;
    shown.erase(last);
  }
  return shown;
}

std::string Table::ToText(size_t width) const {
  const std::vector<ColumnText> texts = ColumnTexts(width);
  const std::vector<size_t> shown = ShownColumns(texts, width);
  std::vector<size_t> widths;
  widths.reserve(texts.size());
  for (const ColumnText& text : texts) widths.push_back(text.widest);
  // The widest of those that can wrap gives way first, then the first column, then those that wrap once more.
  const auto give_way = [&](size_t narrowest) {
    const auto room = [&](size_t c) {
      return texts[c].wraps && widths[c] > std::min(texts[c].needed, narrowest) ? widths[c] : 0;
    };
    while (width > 0 && TotalWidth(shown, widths) > width) {
      const size_t widest = *std::ranges::max_element(shown, {}, room);
      if (room(widest) == 0 && widths[0] <= kMinFirst) break;
      --widths[room(widest) > 0 ? widest : 0];
    }
  };
  give_way(kMinWrapped);
  give_way(kNarrowest);
  const auto row_text = [&](const auto& text_of) {
    std::vector<std::vector<std::string>> cells(columns_.size());
    size_t height = 1;
    for (const size_t c : shown) {
      cells[c] = texts[c].wraps ? WrappedLines(text_of(c), widths[c]) : std::vector{text_of(c)};
      height = std::max(height, cells[c].size());
    }
    std::string out;
    for (size_t i = 0; i < height; ++i) {
      for (const size_t c : shown) {
        const std::string text = i < cells[c].size() ? CutTo(cells[c][i], widths[c]) : "";
        if (c != 0) out += std::string(kGap, ' ');
        out +=
            texts[c].left ? fmt::format("{:<{}}", text, widths[c]) : fmt::format("{:>{}}", text, widths[c]);
      }
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n";
    }
    return out;
  };
  std::string out = title_.empty() ? "" : InLines(title_, width, 0) + "\n";
  out += row_text([&](size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) out += row_text([&](size_t c) { return row[c].text; });
  return out;
}

std::string Table::ToCsv() const {
  std::string out;
  const auto line = [&](const auto& field) {
    std::vector<std::string> fields;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].key.empty()) fields.push_back(field(c));
    }
    return fmt::format("{}\n", fmt::join(fields, ","));
  };
  out += line([&](size_t c) { return columns_[c].key; });
  for (const auto& row : rows_) out += line([&](size_t c) { return CsvField(row[c]); });
  return out;
}

void Report::Fact(std::string key, std::string label, Cell value) {
  value.text = value.text.empty() ? "-" : VisibleLine(value.text);
  items_.emplace_back(FactItem{std::move(key), std::move(label), std::move(value)});
}

Table& Report::AddTable(Table table) {
  items_.emplace_back(std::move(table));
  return std::get<Table>(items_.back());
}

void Report::Note(std::string text) { items_.emplace_back(std::move(text)); }

Report& Report::details() {
  if (!details_) details_ = std::make_unique<Report>();
  return *details_;
}

std::string Report::ToText(size_t width) const {
  size_t label_width = 0;
  for (const auto& item : items_) {
    if (const auto* fact = std::get_if<FactItem>(&item)) {
      label_width = std::max(label_width, fact->label.size());
    }
  }
  std::string out;
  for (const auto& item : items_) {
    if (const auto* fact = std::get_if<FactItem>(&item)) {
      out += fmt::format("{:<{}}  {}\n", fact->label, label_width,
                         InLines(fact->value.text, width, label_width + 2));
    } else if (const auto* table = std::get_if<Table>(&item)) {
      if (table->rows().empty()) continue;
      out += (out.empty() || out.ends_with("\n\n") ? "" : "\n") + table->ToText(width) + "\n";
    } else {
      const auto& note = std::get<std::string>(item);
      const bool is_text = note.find('\n') == std::string::npos;  // not laid out by itself
      out += (is_text ? InLines(note, width, 0) : note) + "\n";
    }
  }
  return out;
}

void Report::AddMembers(nlohmann::ordered_json& json) const {
  for (const auto& item : items_) {
    if (const auto* fact = std::get_if<FactItem>(&item)) {
      json[fact->key] = ToJsonValue(fact->value);
    } else if (const auto* table = std::get_if<Table>(&item)) {
      Json rows = Json::array();
      for (const auto& cells : table->rows()) {
        Json row = Json::object();
        for (size_t c = 0; c < cells.size(); ++c) {
          const std::string& key = table->columns()[c].key;
          if (!key.empty()) row[key] = ToJsonValue(cells[c]);
        }
        rows.push_back(std::move(row));
      }
      json[table->key()] = std::move(rows);
    }
  }
  if (details_) details_->AddMembers(json);
}

std::string Report::ToJson() const {
  Json json = Json::object();
  AddMembers(json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void Report::Print(bool json, const std::string& save_path) const {
  PrintOut(json ? ToJson() : ToText(OutputColumns()));
  if (!save_path.empty()) WriteTextFile(save_path, ToJson());
}

void PrintIfInterrupted(const Report& report, bool json, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted && !report.empty()) report.Print(json);
    throw;
  }
}

}  // namespace tilesmith
