package suite

import (
	"net/http"
	"regexp"
)

// poolGauge matches a sample of a gauge of the default pool, in Prometheus' text format.
var poolGauge = regexp.MustCompile(`(?m)^sortie_pool_slots_limit\{[^}]*pool="default"[^}]*\} [0-9]`)

// metricsOfPools reads the metrics after a run, so that runs and events exist for the gauges.
func metricsOfPools(c *Case) {
	c.End(c.StartShort("one"))
	answer := c.Call(http.MethodGet, "/metrics", "")
	if answer.Status != http.StatusOK || !poolGauge.Match(answer.Body) {
		c.T.Errorf("GET /metrics: got %d %.2000s, want 200 with a match of %s", answer.Status, answer.Body, poolGauge)
	}
}
