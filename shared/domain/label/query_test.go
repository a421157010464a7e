package label_test

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/label"
)

func TestQueryKeepsItsText(t *testing.T) {
	t.Parallel()
	type filter struct {
		Label label.Query `json:"label,omitzero"`
	}
	for text, matches := range map[string]bool{"": true, "team=data": true, "team!=data": false, "team in (data, ops),!env": true, "team in (": false} {
		var f filter
		document, err := json.Marshal(filter{label.QueryOf(text)})
		if err == nil {
			err = json.Unmarshal(document, &f)
		}
		if err != nil || f.Label.String() != text || f.Label.IsZero() != (text == "") || f.Label.Matches(map[string]string{"team": "data"}) != matches || (f.Label.Check() != nil) != (text == "team in (") {
			t.Errorf("%q: got %s, %v, want the same query", text, document, err)
		}
	}
}
