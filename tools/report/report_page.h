// The page: one HTML file that needs nothing else, made of the files in page/ and the data.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tilesmith {

// A file that was compiled in.
struct PageFile {
  std::string_view name, text;
};

// Those of page/, and those of third parties that tools/fetch-report fetched before the build: their scripts,
// names ending in .js, and their licences. In a file that CMake writes.
std::span<const PageFile> PageFiles();
std::span<const PageFile> ThirdPartyFiles();

// The data as it stands in a <script> of the page: JSON in which no "<" is left, so that no text of it ends
// the script or begins a comment; bytes that are no UTF-8 are replaced.
std::string EmbeddedJson(const nlohmann::ordered_json& data);

// `third_party` is ThirdPartyFiles(); where a library is not among them the page draws less.
std::string ReportPage(const nlohmann::ordered_json& data, std::span<const PageFile> third_party);

}  // namespace tilesmith
