package seriestest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sortie-dev/sortie/shared/series"
)

// Lint returns what Prometheus' linter objects to in a text of metrics, apart from the two
// names in milliseconds, which are the contract's.
func Lint(text []byte) ([]promlint.Problem, error) {
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	return slices.DeleteFunc(problems, func(p promlint.Problem) bool {
		return p.Metric == series.FirstToken || p.Metric == series.Decode
	}), nil
}
