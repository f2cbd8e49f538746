"""The tables that scripts leave and pages show."""

from tables import FAST_ALGORITHMS, TYPES, Table, error, exponent, gain, mean, ms, ratio, tenths, times, two_digits, us

# Columns of turns with ONNX Runtime, whose ratios have no quantiles.
PEER_RATIO = ratio("onnxruntime_ratio", "low", "high")
PEER_COLUMNS = [("ours ms", "beside_onnxruntime_seconds", ms), ("ONNX Runtime ms", "onnxruntime_seconds", ms),
                ("<ratio (least to largest)", PEER_RATIO)]
NETWORK_COLUMNS = [
    ("<network", "network"),
    ("ours ms", "ours_seconds", ms),
    ("oneDNN ms", "onednn_seconds", ms),
    ("<ratio (p10 to p90)", ratio("onednn_ratio")),
    ("barriers us", "barrier_seconds", us),
    *PEER_COLUMNS,
    ("peak MiB, ours and its", lambda row: ", ".join(filter(None, (row["peak_mib"], row["onnxruntime_peak_mib"])))),
]


def network_means(rows):
    return [f"Geometric means: {mean(row['onednn_ratio'] for row in rows)} with oneDNN, "
            f"{mean(row['onnxruntime_ratio'] for row in rows)} with ONNX Runtime.", ""]


def closest_layout(row):
    closest = f"{row['single_layout']} {gain('single_gain')(row)}" if row["single_layout"] else "-"
    return f"is {row['plan_is']}; {closest}" if row["plan_is"] else closest


def differing(kind):
    """Fills a cell with how far outputs of so many plans are apart. `kind` is what the columns begin with."""
    return lambda row: f"{exponent(row[f'{kind}difference'])} of {row[f'{kind}plans']} plans"


def type_time(kind):
    """Fills a cell with milliseconds in a type, and how many times as fast as in f32 that is."""
    def cell(row):
        seconds, f32 = row[f"{kind}_seconds"], row["f32_seconds"]
        return ms(seconds) + (f", {float(f32) / float(seconds):.2f}" if seconds and f32 else "")
    return cell


def mixture_gain(row):
    if row["single"] == row["plan_is"]:
        return "-"
    return "{} ({} to {})".format(*(tenths(row[key]) for key in ("gain", "gain_low", "gain_high")))


def mixture_columns(error_at_most):
    return [
        ("<network", "network"),
        ("error at most", error_at_most),
        ("<fastest single type, ms", lambda row: f"{row['single']} {ms(row['single_seconds'])}"),
        ("<the plan, ms", lambda row: f"{row['plan_is']} {ms(row['plan_seconds'])}"),
        ("<gain (95% interval)", mixture_gain),
        ("its error", "output_error", exponent),
        ("predicted", "predicted_output_error", exponent),
        ("<the mixture", "mixture"),
    ]


ONE_BOUND = mixture_columns(lambda row: exponent(row["most_error"]))
LESS_THAN_F32 = list(TYPES)[1:]

NETWORKS = Table("networks.csv", "Whole networks beside oneDNN and ONNX Runtime",
                 [*NETWORK_COLUMNS, ("difference of outputs", "output_difference", error)], network_means)
UNTUNED = Table("untuned.csv", "Whole networks in schedules without tuning beside oneDNN and ONNX Runtime", NETWORKS.columns,
                network_means)
PLANS = Table("plans.csv", "What plans were predicted to take, took, and gain over baselines", [
    ("<network", "network"),
    ("tuned for s", "tuning_seconds", lambda value: f"{float(value):.3g}"),
    ("solved in ms", "solve_seconds", lambda value: f"{float(value) * 1e3:.1f}"),
    ("log predicts ms", "log_predicted_seconds", ms),
    ("predicted ms", "predicted_seconds", ms),
    ("measured ms", "measured_seconds", ms),
    ("gap", "gap", lambda value: f"{float(value):+.1%}"),
    ("nodes within 15%", lambda row: f"{row['heavy_nodes_predicted']} of {row['heavy_nodes']}"),
    ("<gain over the best single layout", closest_layout),
    ("<over best records", gain("best_records_gain")),
])
OUTPUTS = Table("outputs.csv", "How far outputs of plans and baselines are from ONNX Runtime's", [
    ("<network", "network"),
    ("with all templates", differing("")),
    ("without " + ", ".join(FAST_ALGORITHMS), differing("plain_")),
])
BY_TYPE = Table("types.csv", "Whole networks in f32, bf16, 8-bit integers and mixtures, and integers beside ONNX Runtime", [
    ("<network", "network"),
    ("f32 ms", "f32_seconds", ms),
    *((f"<{TYPES[kind]} ms, f32 / it", type_time(kind)) for kind in LESS_THAN_F32),
    ("<errors in that order", lambda row: ", ".join(exponent(row[f"{kind}_error"]) for kind in LESS_THAN_F32)),
    ("<the plan", "plan_is"),
    ("<ONNX Runtime's int8 / ours", PEER_RATIO),
])
MIXTURES = Table("mixtures.csv", "Mixtures of f32, bf16 and 8-bit integers beside the fastest single type within the same error",
                 mixture_columns(lambda row: f"{row['bound']}: {exponent(row['most_error'])}"))
BUSY = Table("busy.csv", "Whole networks in schedules without tuning, beside programs that want the same cores",
             [("<network", "network"), ("programs that compute beside it", "neighbours"), *PEER_COLUMNS])
SOAK = Table("soak.csv", "Sessions opened, run and closed at random", [
    ("<network", "network"), ("threads", "threads"), ("loaded", "loads"), ("sessions", "sessions"), ("runs", "runs"),
    ("outputs that differ", "differing"), ("<as by one thread", "as_first_count")])
ACCURACY = Table("accuracy.csv", "What types do to outputs", [
    ("<network", "network"), ("<side", "side"), ("error of outputs", "error"), ("largest of an input", "worst_error"),
    ("same largest class", "agreement", tenths), ("boxes", "boxes"), ("boxes that match", "boxes_match", tenths)])
NODES = Table("nodes.csv", "Nodes that take longer than in ONNX Runtime", [
    ("<network", "network"),
    ("nodes' sum, ours ms", "ours_seconds", ms),
    ("ONNX Runtime ms", "onnxruntime_seconds", ms),
    ("of ours lost to slower nodes", "lost_share", tenths),
    ("<most of it to", "largest_loss"),
    ("through the reference", "reference_share", tenths),
])
GPU_CLAIMS = Table("gpu_claims.csv", "What was asked of a GPU",
                   [("<what", "what"), ("<asked for", "wanted"), ("figure", "figure"), ("<met", "met")])
GPU = Table("gpu.csv", "Convolutions beside cuDNN's fastest algorithm", [
    ("<what", "what"),
    ("ours ms", "ours_seconds", ms),
    ("cuDNN ms", "cudnn_seconds", ms),
    ("cuDNN / ours", lambda row: two_digits(times(row["cudnn_seconds"], row["ours_seconds"]))),
    ("<its algorithm", "algorithm"),
    ("<template", "template"),
], kept=("what", "ours_seconds", "cudnn_seconds", "algorithm", "template"))


def start_memory(side):
    """Fills a cell with MiB of one process, and of each of four."""
    return lambda row: ", ".join(f"{float(row[f'{side}_{which}_mib']):.0f}" for which in ("one", "each"))


START_SIDES = {"onnx": "ours", "compiled": "compiled", "onnxruntime": "ONNX Runtime", "optimised": "optimised",
               "openvino": "OpenVINO"}
STARTS = Table("starts.csv", "Starts of networks", [
    ("<network", "network"),
    ("<type", "precision"),
    *((f"{text} ms", f"{side}_seconds", ms) for side, text in START_SIDES.items()),
    *((f"{text} MiB", start_memory(side)) for side, text in START_SIDES.items()),
], kept=("network", "precision", "threads", "starts",
         *(f"{side}_{what}" for side in START_SIDES for what in ("seconds", "one_mib", "each_mib", "file_mib"))))

PLAN_KINDS = ["reproducible", "plain", "layers"]


def kind_means(rows):
    """Returns a line of means for each kind that there is."""
    means = [(kind, mean(row.get(f"{kind}_ratio") for row in rows), mean(row.get(f"{kind}_onnxruntime_ratio") for row in rows))
             for kind in PLAN_KINDS if any(row.get(f"{kind}_ratio") for row in rows)]
    return ["Geometric means: " + "; ".join(f"{kind} {free} of free plans, {peer} with ONNX Runtime" for kind, free, peer in means)
            + ".", ""]


KINDS_OF_PLANS = Table("kinds_of_plans.csv", "Plans that may not do all, beside those that may", [
    ("<network", "network"),
    ("<type", "precision"),
    ("free ms", "free_seconds", ms),
    ("<free / reproducible", ratio("reproducible_ratio")),
    ("<ONNX Runtime / reproducible", ratio("reproducible_onnxruntime_ratio")),
    ("<free / without Winograd and Strassen", ratio("plain_ratio")),
    ("<free / layer by layer", ratio("layers_ratio")),
], kind_means)
