package sweep_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func TestSweepRemovesWhatHasExpired(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(*orchestrator.Service) []httpkit.Route { return nil })
	stage.Success(t, "a.xml", "application/xml", "<a/>")
	handler := sweep.Handler(stage.Service)
	if _, err := handler(t.Context(), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if n := stage.Objects.Count(orchestrator.Kept); n != 1 {
		t.Errorf("%d outputs are there before their time, want 1", n)
	}
	stage.Clock.Advance(25 * time.Hour)
	output, err := handler(t.Context(), json.RawMessage(`{"earlySeconds":30}`))
	if err != nil || string(output) != `{}` {
		t.Fatalf("the output is %s (%v)", output, err)
	}
	if n := stage.Objects.Count(orchestrator.Kept); n != 0 {
		t.Errorf("%d outputs are left a day later", n)
	}
	_, err = handler(t.Context(), json.RawMessage(`{"earlySeconds":-1}`))
	if name := lambdakit.ErrorName(err); name != "InvalidInput" {
		t.Errorf("a negative time is %v", err)
	}
}
