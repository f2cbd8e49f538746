// What a command has found out, printed as aligned text for people or as JSON for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "templates/base/config.h"

namespace tilesmith {

// One value and how people read it, on one line whatever the text holds (VisibleLine). Text columns are
// aligned left, numbers right.
struct Cell {
  template <class T>
  using Named = std::vector<std::pair<std::string, T>>;  // an object in JSON, its members in this order
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<double>, std::vector<int64_t>,
               std::vector<std::string>, Named<int64_t>, Named<double>>
      value;  // monostate: null
  std::string text;
};
Cell TextCell(std::string text);
Cell CountCell(int64_t value);
Cell RealCell(double value, int decimals);
Cell MillisecondsCell(double seconds);       // the JSON value is in seconds; text has four significant digits
Cell KnownMillisecondsCell(double seconds);  // the same, "-" of 0: it is not known
Cell MebibytesCell(int64_t bytes);           // the JSON value is in bytes
Cell GflopCell(double flops);                // the JSON value is in billions
Cell RatioCell(double ratio);                // "1.23"
Cell PercentCell(double fraction);           // the JSON value is the fraction
Cell ChangeCell(double fraction);            // likewise: "+1.3%"
Cell NoCell();                               // "-"
Cell ListCell(std::vector<double> values);   // "20 values"
Cell NamesCell(std::vector<std::string> names);  // "direct, winograd"
Cell CountsCell(Cell::Named<int64_t> counts);    // "direct 7, winograd 13"
Cell KnobsCell(const Config& config);            // "ic_block=16 rows=2"

struct Column {
  // In JSON and CSV; carries the unit of the value there: "ours_seconds". "" of a column that only text has.
  std::string key;
  std::string title;  // in text: "ours ms"; "" of a column that text leaves out
  // Where a table is too wide, columns of the highest rank are left out first, of equal ones the last; the
  // first column never is, nor are those of rank 0, whose text is wrapped.
  int rank = 1;
};

class Table {
 public:
  Table(std::string key, std::string title, std::vector<Column> columns)
      : key_(std::move(key)), title_(std::move(title)), columns_(std::move(columns)) {}
  void AddRow(std::vector<Cell> cells);  // precondition: as many as columns

  const std::string& key() const { return key_; }
  const std::string& title() const { return title_; }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  // At most `width` columns of text, 0 being any: by ranks, by wrapping, and by cutting the first column.
  // Text columns that are empty in all rows are left out as well.
  std::string ToText(size_t width = 0) const;
  std::string ToCsv() const;  // full-precision values under the keys, RFC 4180

 private:
  // How wide a column's text is, and how much of that it needs to be shown at all.
  struct ColumnText {
    size_t widest = 0, needed = 0;
    bool left = false, wraps = false;
  };
  std::vector<ColumnText> ColumnTexts(size_t width) const;
  std::vector<size_t> ShownColumns(const std::vector<ColumnText>& texts, size_t width) const;

  std::string key_, title_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Facts, tables and notes in the order they were added; text leaves out tables without rows. JSON is one
// object with a member per fact and per table (an array of objects), notes left out. Values are numbers with
// their unit in the key, lists are lists.
class Report {
 public:
  void Fact(std::string key, std::string label, Cell value);
  // The reference stays valid until the report goes.
  Table& AddTable(Table table);
  void Note(std::string text);
  // What only programs want to know: members of the JSON, behind the others, that text leaves out.
  Report& details();
  bool empty() const { return items_.empty(); }
  // To stdout (streams.h); its JSON to a file as well, unless that is "". Throws as WriteTextFile does.
  void Print(bool json, const std::string& save_path = "") const;
  std::string ToText(size_t width = 0) const;
  std::string ToJson() const;

 private:
  struct FactItem {
    std::string key, label;
    Cell value;
  };
  void AddMembers(nlohmann::ordered_json& json) const;

  std::deque<std::variant<FactItem, Table, std::string>> items_;
  std::unique_ptr<Report> details_;
};

// Calls `work`, which fills the report. When it is interrupted (Error(kInterrupted)) what it has filled in by
// then is printed, unless that is nothing, before the error goes on.
void PrintIfInterrupted(const Report& report, bool json, const std::function<void()>& work);

}  // namespace tilesmith
