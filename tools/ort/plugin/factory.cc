// What ONNX Runtime finds in the library: CreateEpFactories and ReleaseEpFactory.
#include <fmt/format.h>

#include <memory>

#include "layouts/base/error.h"
#include "tools/ort/plugin/provider.h"

namespace tilesmith {
namespace {

// The options of a session whose names begin so, by the rest of their names.
std::map<std::string, std::string> OptionTexts(const OrtApi& api, const OrtSessionOptions* session,
                                               std::string_view prefix) {
  OrtKeyValuePairs* pairs = nullptr;
  CheckOrt(api, api.GetSessionOptionsConfigEntries(session, &pairs));
  const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> owner(pairs, api.ReleaseKeyValuePairs);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  api.GetKeyValuePairs(pairs, &keys, &values, &count);
  std::map<std::string, std::string> texts;
  for (size_t i = 0; i < count; ++i)
    if (const std::string_view key = keys[i]; key.starts_with(prefix))
      texts.emplace(key.substr(prefix.size()), values[i]);
  return texts;
}

struct Factory : OrtEpFactory {
  explicit Factory(const OrtApi& of) : OrtEpFactory{}, api(of) {
    ort_version_supported = kOrtApiVersion;
    GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return "tilesmith"; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory*) noexcept { return TILESMITH_VERSION; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                             OrtEpDevice** ours, size_t max, size_t* our_count) noexcept {
      const OrtApi& api = static_cast<Factory*>(self)->api;
      *our_count = 0;
      return OrtGuarded(api, [&] {
        for (size_t i = 0; i < count && *our_count < max; ++i) {
          if (api.HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
          CheckOrt(api,
                   api.GetEpApi()->CreateEpDevice(self, devices[i], nullptr, nullptr, &ours[*our_count]));
          ++*our_count;
        }
      });
    };
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                  const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** ep) noexcept {
      const OrtApi& api = static_cast<Factory*>(self)->api;
      *ep = nullptr;
      return OrtGuarded(api, [&] {
        *ep =
            std::make_unique<Provider>(
                api, *logger, ParsePluginOptions(OptionTexts(api, session, "ep.tilesmithexecutionprovider.")),
                ParseContextOptions(OptionTexts(api, session, "ep.context_")))
                .release();
      });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Provider*>(ep); };
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept -> OrtStatus* {
      *allocator = nullptr;  // the host's own
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
  }

  const OrtApi& api;
};

}  // namespace
}  // namespace tilesmith

extern "C" __attribute__((visibility("default"))) OrtStatus* CreateEpFactories(const char*,
                                                                               const OrtApiBase* base,
                                                                               const OrtLogger*,
                                                                               OrtEpFactory** factories,
                                                                               size_t max, size_t* count) {
  *count = 0;
  const OrtApi* api = base->GetApi(tilesmith::kOrtApiVersion);
  if (api == nullptr)
    return base->GetApi(1)->CreateStatus(
        ORT_NOT_IMPLEMENTED, "tilesmith needs ONNX Runtime 1.23 or later, whose graphs plug-ins can read");
  return tilesmith::OrtGuarded(*api, [&] {
    if (max == 0) throw tilesmith::Error(tilesmith::ErrorCode::kUsage, "there is no room for a factory");
    factories[0] = new tilesmith::Factory(*api);
    *count = 1;
  });
}

extern "C" __attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<tilesmith::Factory*>(factory);
  return nullptr;
}
