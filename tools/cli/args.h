// The arguments of one command: declared once, parsed, checked, and explained in --help.
//
// Values land in variables of the caller, which hold the defaults beforehand and outlive parsing. Whatever is
// wrong is an Error(kUsage) whose message names the option, what was allowed, and what was given.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {

struct ArgumentDescription {
  std::string names;  // "-o,--output", or of a positional one "MODEL"
  std::string value;  // what stands for an option's value, "N" or "{xgb,ga}"; "" when it takes none
  std::string help;
  bool positional = false;
};

class Args {
 public:
  Args();
  ~Args();
  Args(const Args&) = delete;
  Args& operator=(const Args&) = delete;

  // A required argument without a name: MODEL.
  void Positional(const std::string& name, std::string* value, const std::string& help);
  // At least one of them: LOG...
  void Positionals(const std::string& name, std::vector<std::string>* values, const std::string& help);
  void OptionalPositional(const std::string& name, std::string* value, const std::string& help);
  // What is declared from now on is listed under this heading of the help: one of "Model", "Machine",
  // "Search", "Output" or, by default, "Options". Returns the heading until now.
  std::string Group(const std::string& heading);
  // Options are written "--name" or "-o,--output".
  void Flag(const std::string& names, bool* value, const std::string& help);
  // `type` stands for the value in the help: FILE, DIR, NAME.
  void Text(const std::string& names, std::string* value, const std::string& help,
            const std::string& type = "TEXT");
  // May be given several times.
  void Texts(const std::string& names, std::vector<std::string>* values, const std::string& help,
             const std::string& type = "TEXT");
  // An integer of at least 1.
  void Positive(const std::string& names, int64_t* value, const std::string& help, int64_t most = INT64_MAX);
  // An integer of at least 0.
  void NonNegative(const std::string& names, int64_t* value, const std::string& help,
                   int64_t most = INT64_MAX);
  void Real(const std::string& names, double* value, const std::string& help);
  // "90s", "8m", "1h30m", "500ms", or a number of seconds.
  void Duration(const std::string& names, double* seconds, const std::string& help);
  void Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  // The same of what is no text: `take` is told the choice.
  void Choice(const std::string& names, const std::vector<std::string>& choices, const std::string& help,
              std::function<void(const std::string&)> take);

  // The arguments after the command's name.
  void Parse(const std::vector<std::string>& arguments);
  bool help_asked() const;
  // The options that were given, as "--name=value", "--name=true" where it takes none.
  std::vector<std::string> GivenOptions() const;
  bool IsGiven(const char* option) const;
  // For options that would be ignored: throws Error(kUsage), "--time WHY", for the first that was given.
  void RefuseGiven(std::initializer_list<const char*> options, std::string_view why) const;
  // The list of arguments and options, for below the command's purpose: by heading, wrapped to `width`.
  std::string Help(const std::string& command, size_t width) const;
  // The same as values, in the order of declaration, -h left out.
  std::vector<ArgumentDescription> Describe() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Words in lines of at most `width`, behind `indent` spaces from the second line on. No line begins with what
// looks like an option.
std::string Wrapped(const std::string& text, size_t width, size_t indent);

// A message for those who use the command line: every setting (layouts/base/settings.h) is called after its
// option. "`max_memory` must be above 0" -> "--max-memory must be above 0".
std::string WithOptionNames(std::string message);

// The number of seconds of a text such as "1h30m". Throws Error(kUsage).
double ParseDuration(const std::string& name, const std::string& text);

}  // namespace tilesmith
