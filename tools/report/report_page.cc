#include "tools/report/report_page.h"

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

std::string_view PageText(std::string_view name) {
  const auto files = PageFiles();
  const auto found = std::ranges::find(files, name, &PageFile::name);
  TILESMITH_CHECK(found != files.end(), "the page lacks {}", name);
  return found->text;
}

std::string EscapedHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else
      escaped += c;
  }
  return escaped;
}

std::string Script(std::string_view text) {
  std::string script = "<script>\n";
  script += text;
  return script + "\n</script>\n";
}

// What stands for `{{name}}` in page.html.
std::string Part(std::string_view name, const nlohmann::ordered_json& data,
                 std::span<const PageFile> third_party) {
  std::string part;
  if (name == "style") return std::string(PageText("page.css"));
  if (name == "data") return EmbeddedJson(data);
  if (name == "libraries" || name == "licences") {
    for (const PageFile& file : third_party) {
      const bool is_script = file.name.ends_with(".js");
      if (is_script != (name == "libraries")) continue;
      part += is_script
                  ? Script(file.text)
                  : "<h3>" + EscapedHtml(file.name) + "</h3>\n<pre>" + EscapedHtml(file.text) + "</pre>\n";
    }
    return part;
  }
  TILESMITH_CHECK(name == "scripts", "page.html asks for {}", name);
  for (const char* file : {"base.js", "charts.js", "graph.js", "sections.js"}) part += Script(PageText(file));
  return part;
}

}  // namespace

std::string EmbeddedJson(const nlohmann::ordered_json& data) {
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string embedded;
  embedded.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      embedded += "\\u003c";
    else
      embedded += c;
  }
  return embedded;
}

std::string ReportPage(const nlohmann::ordered_json& data, std::span<const PageFile> third_party) {
  std::string page;
  std::string_view rest = PageText("page.html");
  for (size_t begin; (begin = rest.find("{{")) != std::string_view::npos;) {
    const size_t end = rest.find("}}", begin);
    page += rest.substr(0, begin);
    page += Part(rest.substr(begin + 2, end - begin - 2), data, third_party);
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace tilesmith
