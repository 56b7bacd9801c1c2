package result

import "slices"

// costs are what a session takes, of both ends.
var costs = []string{"wire", "client cpu", "server cpu", "client memory", "server memory"}

// Cost says whether a metric is one of what a session takes, and not of what it gives.
func Cost(metric string) bool { return slices.Contains(costs, metric) }

// MoreIsBetter says whether the greater figure of a metric is the better one.
func MoreIsBetter(metric string) bool { return metric == "rate" || metric == "complete" }
