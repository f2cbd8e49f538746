#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/quantize/quantize_model.h"

namespace tilesmith {
namespace {

Cell DecibelCell(const std::optional<SignalError>& error) {
  if (!error) return NoCell();
  const double decibels = error->Decibels();
  if (std::isfinite(decibels)) return RealCell(decibels, 1);
  return {{}, decibels > 0 ? "exact" : "-"};
}

Cell NumberCell(double value) { return {value, fmt::format("{:.4g}", value)}; }

Table LayersTable(const QuantizedModel& quantized) {
  Table table("layers", "Layers: range and scale of the output, error alone and in the network",
              {{"node", "node"},
               {"op_type", "operator"},
               {"output", ""},
               {"low", "low", 2},
               {"high", "high", 2},
               {"scale", "scale"},
               {"zero_point", "zero", 2},
               {"channels", ""},
               {"smallest_weight_scale", ""},
               {"largest_weight_scale", ""},
               {"raised_scales", ""},
               {"own_sqnr_db", "alone dB"},
               {"network_sqnr_db", "network dB"}});
  for (const QuantizedLayerRow& row : quantized.layers) {
    const QdqLayer& layer = row.layer;
    std::vector<Cell> cells = {TextCell(layer.name), TextCell(layer.op_type), TextCell(layer.output)};
    if (row.tensor >= 0) {
      const QuantizedTensorRow& tensor = quantized.tensors[row.tensor];
      cells.insert(cells.end(), {NumberCell(tensor.range.low), NumberCell(tensor.range.high),
                                 NumberCell(tensor.quantizer.scale), CountCell(tensor.quantizer.zero_point)});
    } else {
      cells.insert(cells.end(), {NoCell(), NoCell(), Cell{{}, "float"}, NoCell()});
    }
    const bool weighted = layer.channels > 0;
    cells.push_back(weighted ? CountCell(layer.channels) : NoCell());
    cells.push_back(weighted ? NumberCell(layer.smallest_scale) : NoCell());
    cells.push_back(weighted ? NumberCell(layer.largest_scale) : NoCell());
    cells.push_back(weighted ? CountCell(layer.raised) : NoCell());
    cells.push_back(DecibelCell(row.own));
    cells.push_back(DecibelCell(row.network));
    table.AddRow(std::move(cells));
  }
  return table;
}

Table TensorsTable(const QuantizedModel& quantized) {
  Table table("tensors", "Tensors",
              {{"tensor", "tensor"},
               {"seen_low", "seen from"},
               {"seen_high", "to"},
               {"low", "low"},
               {"high", "high"},
               {"scale", "scale"},
               {"zero_point", "zero"},
               {"type", "type"},
               {"not_numbers", "NaN or inf"}});
  for (const QuantizedTensorRow& row : quantized.tensors) {
    table.AddRow({TextCell(row.name), NumberCell(row.seen.low), NumberCell(row.seen.high),
                  NumberCell(row.range.low), NumberCell(row.range.high), NumberCell(row.quantizer.scale),
                  CountCell(row.quantizer.zero_point),
                  TextCell(std::string(DataTypeName(row.quantizer.type))), CountCell(row.not_numbers)});
  }
  return table;
}

Table OutputsTable(const QuantizedModel& quantized) {
  Table table("outputs", "Outputs beside the float model's",
              {{"output", "output"},
               {"sqnr_db", "SQNR dB"},
               {"relative_error", "relative error"},
               {"agreement", "same largest value"}});
  for (const QuantizedOutputRow& row : quantized.outputs) {
    const double relative = row.error.signal > 0 ? std::sqrt(row.error.noise / row.error.signal) : 0;
    const double agreement =
        row.rows > 0 ? static_cast<double>(row.agreeing) / static_cast<double>(row.rows) : 0;
    table.AddRow(
        {TextCell(row.name),
         DecibelCell(row.error),
         {relative, fmt::format("{:.2e}", relative)},
         row.rows > 0 ? Cell{agreement, fmt::format("{} of {}", row.agreeing, row.rows)} : NoCell()});
  }
  return table;
}

}  // namespace

void AddQuantization(Report& report, const QuantizeModelRequest& request, const QuantizedModel& quantized) {
  report.Fact("network", "network", TextCell(quantized.network));
  report.Fact("model", "quantised model", TextCell(request.output_path));
  report.Fact("method", "method", TextCell(std::string(CalibrationMethodName(request.calibration.method))));
  report.Fact("calibration", "calibrated on",
              TextCell(fmt::format("{} sample{} of {}", quantized.samples, quantized.samples == 1 ? "" : "s",
                                   quantized.calibrated_on)));
  report.details().Fact("samples", "", CountCell(quantized.samples));
  report.details().Fact("random_inputs", "", {quantized.random, ""});
  report.Fact("quantized_layers", "quantised nodes", CountCell(std::ssize(quantized.layers)));
  report.Fact("quantized_tensors", "quantised tensors", CountCell(std::ssize(quantized.tensors)));
  report.Fact("kept_nodes", "nodes that stay float", CountCell(std::ssize(quantized.kept)));
  report.Fact("float_bytes", "MiB before", MebibytesCell(static_cast<int64_t>(quantized.bytes_before)));
  report.Fact("bytes", "MiB now", MebibytesCell(static_cast<int64_t>(quantized.bytes_after)));
  report.AddTable(LayersTable(quantized));
  if (!quantized.kept.empty()) {
    Table& kept = report.AddTable(Table("kept", "Nodes that stay float",
                                        {{"node", "node"}, {"op_type", "operator"}, {"reason", "since"}}));
    for (const KeptNode& node : quantized.kept)
      kept.AddRow({TextCell(node.name), TextCell(node.op_type), TextCell(node.reason)});
  }
  if (!quantized.outputs.empty()) report.AddTable(OutputsTable(quantized));
  report.details().AddTable(TensorsTable(quantized));
}

}  // namespace tilesmith
