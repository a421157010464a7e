package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestProblemHasAWordOrAnObjectAsItsError decodes the problems of a worker's call and of an
// unknown path.
func TestProblemHasAWordOrAnObjectAsItsError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"code":"X","detail":"d","error":"task_expired"}`:     "task_expired",
		`{"code":"X","detail":"d","error":{"code":"x"}}`:       "",
		`{"code":"X","detail":"d"}`:                            "",
		`{"code":"X","detail":"d","error":null,"message":"m"}`: "",
	} {
		var p contract.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Error != want || p.Code != "X" || p.Detail != "d" {
			t.Errorf("%s: got %+v (%v), want the error %q", text, p, err, want)
		}
	}
	var p contract.Problem
	if err := json.Unmarshal([]byte(`{"code":1}`), &p); err == nil {
		t.Errorf("got %+v, want an error", p)
	}
}
