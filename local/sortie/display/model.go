package display

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Trust describes the signature of a model.
func Trust(m contract.Model) string {
	switch {
	case m.Verified != nil:
		return "verified"
	case m.Signed != nil && *m.Signed:
		return "signed"
	}
	return "unsigned"
}

// Context describes the context of a model.
func Context(m contract.Model) string {
	if m.ContextTokens == 0 {
		return "of the engine"
	}
	return strconv.Itoa(m.ContextTokens)
}

func inputPrice(p contract.ModelPrice) string {
	text := fmt.Sprintf("%d nano-dollars for a token of the prompt", p.Input)
	if p.Cached != nil {
		text += fmt.Sprintf(", %d for a cached one", *p.Cached)
	}
	return text
}

// Model says what the catalog has about a model.
func (z Times) Model(m contract.Model) string {
	text := fmt.Sprintf("workloads: %s\ncontext: %s\nprice: %s, %d for a generated one\n",
		strings.Join(m.Workloads, ", "), Context(m), inputPrice(*m.Price), *m.Price.Output)
	for _, s := range m.Split {
		text += fmt.Sprintf("split: %d %% of the tasks for model %s\n", s.Percent, s.Model)
	}
	for _, s := range m.Shadow {
		text += fmt.Sprintf("shadow: %d %% of the tasks are copied to model %s\n", s.Percent, s.Model)
	}
	if v := m.Verified; v != nil {
		text += fmt.Sprintf("verified: %s, by the key %s\n", z.Moment(time.UnixMilli(v.AtMS)), v.Key)
	}
	for _, row := range []struct{ name, text string }{
		{"digest", m.Digest}, {"source", m.Source}, {"name at the engine", m.EngineModel}, {"tokenizer", m.Tokenizer}, {"tags", strings.Join(m.Tags, ", ")},
	} {
		if row.text != "" {
			text += row.name + ": " + Clean(row.text) + "\n"
		}
	}
	return text + fmt.Sprintf("changed: %s, by %s", z.Moment(time.UnixMilli(m.UpdatedMS)), Clean(cmp.Or(m.UpdatedBy, "unknown")))
}
