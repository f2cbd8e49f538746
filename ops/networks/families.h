// One function per built-in network, all of the form BuiltInNetwork::build; the families share a file each.
#pragma once

#include "ops/networks/network_builder.h"

namespace tilesmith {

NetworkBuilder::Id BuildResnet18(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildResnet34(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildResnet50(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildResnet101(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildVgg16(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildVgg19(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildMobilenetV1(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildMobilenetV2(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildSqueezenet11(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildDensenet121(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildInceptionV3(NetworkBuilder& builder, NetworkBuilder::Id input);
NetworkBuilder::Id BuildUnet(NetworkBuilder& builder, NetworkBuilder::Id input);

}  // namespace tilesmith
