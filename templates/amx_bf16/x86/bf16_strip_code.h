// Generated code for strips whose products are of bf16 (templates/amx/x86/strip_code.h).
#pragma once

#include "templates/amx/x86/strip_code.h"
#include "templates/amx_bf16/config.h"

namespace tilesmith::amx_bf16 {

class Bf16StripCode final : public amx::StripCode {
 public:
  Bf16StripCode(const Schedule& schedule, const Target& cpu);

 private:
  void EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows, const Xbyak::Tmm& weights) override;
  void EmitConstantsOf(const Vectors& vectors) override;
  void EmitPixels(const Vectors& vectors, int count) override;
  // Two vectors are stored as one.
  bool Together(const Vectors& vectors) const;
};

}  // namespace tilesmith::amx_bf16
