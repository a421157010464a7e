package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/budget"
)

// Grant limits the inference tasks of a token. The zero value has no limits.
type Grant struct {
	// Models are the ids of the models that the token may use, at most MostModels; none means all.
	Models []string `json:"models,omitempty"`
	// Budget is what the tasks may cost; nil is without a limit.
	Budget *budget.Allowance `json:"budget,omitempty"`
	// RequestsPerMinute is the number of tasks that are admitted in a minute, 0 to MostRate; 0 is
	// without a limit.
	RequestsPerMinute int64 `json:"requestsPerMinute,omitempty"`
}

// Limits of a Grant. modelLength is in bytes.
const (
	MostModels  = 100
	MostRate    = 1_000_000
	modelLength = 512
)

// Allows reports whether tasks may use a model.
func (g Grant) Allows(model string) bool {
	return len(g.Models) == 0 || slices.Contains(g.Models, model)
}

// problem is what is wrong with a field of a record.
type problem struct{ field, text string }

func (g Grant) check() (problems []problem) {
	if len(g.Models) > MostModels {
		problems = append(problems, problem{"models", fmt.Sprintf("%d models, want at most %d", len(g.Models), MostModels)})
	}
	for i, m := range g.Models {
		switch {
		case m == "" || len(m) > modelLength || strings.ContainsFunc(m, func(c rune) bool { return c <= ' ' || c == 0x7f }):
			problems = append(problems, problem{"models", fmt.Sprintf("malformed model %.80q, want an id of GET /v1/models", m)})
		case slices.Contains(g.Models[:i], m):
			problems = append(problems, problem{"models", fmt.Sprintf("model %q is listed twice", m)})
		}
	}
	if g.Budget != nil {
		if err := g.Budget.Check(); err != nil {
			problems = append(problems, problem{"budget", err.Error()})
		}
	}
	if g.RequestsPerMinute < 0 || g.RequestsPerMinute > MostRate {
		problems = append(problems, problem{"requestsPerMinute", fmt.Sprintf("%d is out of range, want 1 to %d, or 0 for no limit", g.RequestsPerMinute, MostRate)})
	}
	return problems
}
