#include "tools/cli/args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"

namespace tilesmith {
namespace {

[[noreturn]] void Reject(const std::string& name, const std::string& wanted, const std::string& got) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{} must be {}, got {}", name, wanted, got.empty() ? "nothing" : got));
}

int64_t ParseInteger(const std::string& name, const std::string& text, int64_t minimum, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < minimum || value > most) {
    const std::string end = most == INT64_MAX ? "on" : fmt::format("to {}", most);
    Reject(name, fmt::format("a whole number from {} {}", minimum, end), text);
  }
  return value;
}

double ParseReal(const std::string& name, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    Reject(name, "a number", text);
  }
  return value;
}

// "-o,--output" -> "--output", "--for,--time-budget" -> "--for or --time-budget"
std::string LongName(const std::string& names) {
  const size_t at = names.find("--"), comma = names.find(',', at);
  if (at == std::string::npos) return names;
  const std::string name = names.substr(at, comma - at);
  return comma == std::string::npos ? name : name + " or " + names.substr(comma + 1);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

double ParseDuration(const std::string& name, const std::string& text) {
  static constexpr const char* kWanted = "a duration such as 500ms, 90s, 8m or 1h30m, or a number of seconds";
  double total = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end) Reject(name, kWanted, "nothing");
  while (at != end) {
    double value = 0;
    const auto [after, error] = std::from_chars(at, end, value, std::chars_format::fixed);
    if (error != std::errc() || !(value >= 0)) Reject(name, kWanted, text);
    const char* const unit_end = std::find_if(after, end, [](char c) { return c < 'a' || c > 'z'; });
    const std::string_view unit(after, static_cast<size_t>(unit_end - after));
    if (unit == "ms") {
      total += value * 1e-3;
    } else if (unit == "s" || (unit.empty() && unit_end == end && at == text.data())) {
      total += value;
    } else if (unit == "m") {
      total += value * 60;
    } else if (unit == "h") {
      total += value * 3600;
    } else {
      Reject(name, kWanted, text);
    }
    at = unit_end;
  }
  if (total <= 0 || !std::isfinite(total)) Reject(name, kWanted, text);
  return total;
}

struct Args::Impl {
  CLI::App app;
  CLI::Option* help = nullptr;
  // Texts as given; converted after parsing, so that every complaint is ours.
  struct Pending {
    CLI::Option* option;
    std::function<void(const std::string&)> convert;
  };
  std::vector<Pending> pending;
  // What the help says of each, in the order of declaration.
  struct Listed {
    std::string names, help, heading;
    bool positional = false, required = false;
  };
  std::vector<Listed> listed;
  std::string heading = "Options";

  // Without their dashes.
  std::vector<std::string> LongNames() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    return names;
  }

  [[noreturn]] void RejectUnexpected(const std::string& argument) const {
    const std::vector<std::string> meant =
        argument.starts_with("--") ? CloseNames(argument.substr(2, argument.find('=') - 2), LongNames(), 1)
                                   : std::vector<std::string>();
    throw Error(ErrorCode::kUsage,
                fmt::format("unexpected argument {}{}", argument,
                            meant.empty() ? "" : fmt::format(" (did you mean --{}?)", meant.front())));
  }

  void List(const std::string& names, const std::string& type, const std::string& help_text) {
    const bool positional = !names.starts_with('-');
    listed.push_back({positional || type.empty() ? names : names + " " + type, help_text,
                      positional ? "" : heading, positional});
  }

  CLI::Option* Add(const std::string& names, const std::string& type, const std::string& help_text,
                   std::function<void(const std::string&)> convert) {
    CLI::Option* option = app.add_option(names)->description(help_text)->type_name(type)->expected(1);
    option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    pending.push_back({option, std::move(convert)});
    List(names, type, help_text);
    return option;
  }
};

Args::Args() : impl_(std::make_unique<Impl>()) {
  impl_->app.set_help_flag();
  impl_->help = impl_->app.add_flag("-h,--help")->description("Print this help");
}
Args::~Args() = default;

std::string Args::Group(const std::string& heading) { return std::exchange(impl_->heading, heading); }

void Args::Positional(const std::string& name, std::string* value, const std::string& help) {
  impl_->Add(name, "", help, [value](const std::string& text) { *value = text; })->required();
  impl_->listed.back().required = true;
}

void Args::Positionals(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  CLI::Option* option =
      impl_->Add(name, "", help, [values](const std::string& text) { values->push_back(text); });
  option->expected(1, CLI::detail::expected_max_vector_size);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args()->required();
  impl_->listed.back().required = true;
  impl_->listed.back().names += "...";
}

void Args::OptionalPositional(const std::string& name, std::string* value, const std::string& help) {
  impl_->Add(name, "", help, [value](const std::string& text) { *value = text; });
}

void Args::Flag(const std::string& names, bool* value, const std::string& help) {
  impl_->app.add_flag(names, *value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  impl_->List(names, "", help);
}

void Args::Text(const std::string& names, std::string* value, const std::string& help,
                const std::string& type) {
  impl_->Add(names, type, help, [value](const std::string& text) { *value = text; });
}

void Args::Texts(const std::string& names, std::vector<std::string>* values, const std::string& help,
                 const std::string& type) {
  CLI::Option* option =
      impl_->Add(names, type, help, [values](const std::string& text) { values->push_back(text); });
  option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

void Args::Positive(const std::string& names, int64_t* value, const std::string& help, int64_t most) {
  impl_->Add(names, "N", help, [value, most, name = LongName(names)](const std::string& text) {
    *value = ParseInteger(name, text, 1, most);
  });
}

void Args::NonNegative(const std::string& names, int64_t* value, const std::string& help, int64_t most) {
  impl_->Add(names, "N", help, [value, most, name = LongName(names)](const std::string& text) {
    *value = ParseInteger(name, text, 0, most);
  });
}

void Args::Real(const std::string& names, double* value, const std::string& help) {
  impl_->Add(names, "X", help,
             [value, name = LongName(names)](const std::string& text) { *value = ParseReal(name, text); });
}

void Args::Duration(const std::string& names, double* seconds, const std::string& help) {
  impl_->Add(names, "TIME", help, [seconds, name = LongName(names)](const std::string& text) {
    *seconds = ParseDuration(name, text);
  });
}

void Args::Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
                  const std::string& help) {
  Choice(names, choices, help, [value](const std::string& text) { *value = text; });
}

void Args::Choice(const std::string& names, const std::vector<std::string>& choices, const std::string& help,
                  std::function<void(const std::string&)> take) {
  const std::string type = fmt::format("{{{}}}", fmt::join(choices, ","));
  impl_->Add(names, type, help,
             [choices, name = LongName(names), take = std::move(take)](const std::string& text) {
               if (std::ranges::find(choices, text) == choices.end())
                 Reject(name, fmt::format("one of {}", fmt::join(choices, ", ")), text);
               take(text);
             });
}

void Args::Parse(const std::vector<std::string>& arguments) {
  const bool asked = std::any_of(arguments.begin(), arguments.end(),
                                 [](const std::string& text) { return text == "-h" || text == "--help"; });
  try {
    impl_->app.parse(asked ? std::vector<std::string>{"--help"}
                           : std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::RequiredError& error) {
    if (asked) return;
    // What is missing may be missing because of a mistaken option.
    const std::vector<std::string> unexpected = impl_->app.remaining();
    const auto option =
        std::ranges::find_if(unexpected, [](const auto& text) { return text.starts_with('-'); });
    if (option != unexpected.end()) impl_->RejectUnexpected(*option);
    throw Error(ErrorCode::kUsage, FirstLine(error.what()));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> unexpected = impl_->app.remaining();
    impl_->RejectUnexpected(unexpected.empty() ? "" : unexpected.front());
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = FirstLine(error.what());  // "--batch: 1 required N missing"
    const std::string name = message.substr(0, message.find(':'));
    const bool missing = message.ends_with("missing");
    throw Error(ErrorCode::kUsage, name + (missing ? " needs a value" : " may be given only once"));
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, FirstLine(error.what()));
  }
  for (const Impl::Pending& pending : impl_->pending) {
    for (const std::string& text : pending.option->results()) pending.convert(text);
  }
}

std::vector<std::string> Args::GivenOptions() const {
  std::vector<std::string> given;
  for (const CLI::Option* option : std::as_const(impl_->app).get_options()) {
    if (option->get_lnames().empty()) continue;
    for (const std::string& value : option->results())
      given.push_back(fmt::format("--{}={}", option->get_lnames().front(), value));
  }
  return given;
}

bool Args::IsGiven(const char* option) const { return impl_->app.count(option) > 0; }

void Args::RefuseGiven(std::initializer_list<const char*> options, std::string_view why) const {
  for (const char* option : options)
    if (IsGiven(option)) throw Error(ErrorCode::kUsage, fmt::format("{} {}", option, why));
}

bool Args::help_asked() const { return impl_->help->count() > 0; }

std::string Wrapped(const std::string& text, size_t width, size_t indent) {
  std::vector<std::string> pieces;  // what stays together: an option with the word before it
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!pieces.empty() && word.starts_with('-')) {
      pieces.back() += " " + word;
    } else {
      pieces.push_back(std::move(word));
    }
  }
  std::string out;
  size_t column = indent;
  for (const std::string& piece : pieces) {
    const bool fits = column + 1 + piece.size() <= width;
    if (!out.empty()) out += fits ? " " : "\n" + std::string(indent, ' ');
    column = out.empty() || !fits ? indent : column + 1;
    out += piece;
    column += piece.size();
  }
  return out;
}

std::string WithOptionNames(std::string message) {
  for (const std::string_view setting : settings::kAll) {
    std::string option = setting == settings::kInputShapes
                             ? "--input-shape"
                             : fmt::format("--{}", setting.substr(1, setting.size() - 2));
    std::ranges::replace(option, '_', '-');
    for (size_t at = message.find(setting); at != std::string::npos; at = message.find(setting, at))
      message.replace(at, setting.size(), option);
  }
  return message;
}

std::string Args::Help(const std::string& command, size_t width) const {
  constexpr size_t kMaxNames = 26;  // what is longer has a line of its own
  size_t names_width = 0;
  std::string usage = "Usage: " + command;
  for (const Impl::Listed& listed : impl_->listed) {
    if (listed.names.size() <= kMaxNames) names_width = std::max(names_width, listed.names.size());
    if (listed.positional) usage += listed.required ? " " + listed.names : " [" + listed.names + "]";
  }
  const size_t indent = 2 + names_width + 2;
  std::string text = Wrapped(usage + " [OPTION]...", width, 2) + "\n";
  for (const char* heading : {"", "Options", "Search", "Output", "Model", "Machine"}) {
    std::string lines;
    for (const Impl::Listed& listed : impl_->listed) {
      if (listed.heading != heading) continue;
      const bool is_long = listed.names.size() > names_width;
      lines += "  " + listed.names;
      lines += is_long ? "\n" + std::string(indent, ' ') : std::string(indent - 2 - listed.names.size(), ' ');
      lines += Wrapped(listed.help, width, indent) + "\n";
    }
    if (lines.empty()) continue;
    text += fmt::format("\n{}{}", *heading != '\0' ? std::string(heading) + ":\n" : "", lines);
  }
  return text;
}

std::vector<ArgumentDescription> Args::Describe() const {
  std::vector<ArgumentDescription> arguments;
  for (const CLI::Option* option : std::as_const(impl_->app).get_options()) {
    if (option == impl_->help) continue;
    const bool takes_value = option->get_items_expected_max() > 0;
    arguments.push_back({option->get_name(option->get_positional(), true),
                         takes_value ? option->get_type_name() : "", option->get_description(),
                         option->get_positional()});
  }
  return arguments;
}

}  // namespace tilesmith
