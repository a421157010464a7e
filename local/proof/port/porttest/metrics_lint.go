package porttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

// LintMetrics returns the problems that Prometheus' linter finds in metrics in the text format. It
// ignores the two metrics in milliseconds, because the contract defines their names.
func LintMetrics(text []byte) ([]promlint.Problem, error) {
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	return slices.DeleteFunc(problems, func(p promlint.Problem) bool {
		return p.Metric == series.FirstToken || p.Metric == series.Decode
	}), nil
}
